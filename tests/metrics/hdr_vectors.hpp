#pragma once

#include <cstdint>
#include <vector>

namespace offload::metrics {

/// Made by make_hdr_vectors.py.
struct HdrVector {
  struct Count {
    std::uint64_t value;
    std::uint64_t count;
  };
  const char* name;
  std::uint64_t highest;
  const char* text;
  std::vector<Count> counts;
};

inline constexpr unsigned kHdrVectorDigits = 2;

inline const std::vector<HdrVector>& hdr_vectors() {
  static const std::vector<HdrVector> vectors = {
      {"empty", 3600000000000U, "HISTFAAAAB54nJNpmSzMgABMUJqRgYHZzWDHAgb7DxABAE4gBEo=", {}},
      {"zero",
       3600000000000U,
       "HISTFAAAACF4nJNpmSzMwMDAyAABTFAayGd2M9ixgMH+A1QCAFKOBE0=",
       {{0U, 1U}}},
      {"one",
       3600000000000U,
       "HISTFAAAACJ4nJNpmSzMwMDAxAABMJqRgYHZzWDHAgb7D1ABJgBW/gRP",
       {{1U, 1U}}},
      {"edges",
       3600000000000U,
       "HISTFAAAAEp4nJNpmSzMwMCgwQABTFCakYGB2c1gxwIG+w9QCRa274wcXDw/"
       "GfmUfjOK6P1mlrL6zajg9ptfLei3qE7cb0ajrN/8FmUA55QRHA==",
       {{0U, 1U},
        {1U, 2U},
        {2U, 3U},
        {127U, 4U},
        {128U, 5U},
        {129U, 6U},
        {255U, 7U},
        {256U, 8U},
        {257U, 9U},
        {511U, 10U},
        {512U, 11U},
        {513U, 12U},
        {2047U, 13U},
        {2048U, 14U},
        {2049U, 15U},
        {4095U, 16U},
        {4096U, 17U},
        {4097U, 18U},
        {1048575U, 19U},
        {1048576U, 20U},
        {1048577U, 21U},
        {2147483647U, 22U},
        {2147483648U, 23U},
        {2147483649U, 24U},
        {4294967295U, 25U},
        {4294967296U, 26U},
        {4294967297U, 27U},
        {1099511627775U, 28U},
        {1099511627776U, 29U},
        {1099511627777U, 30U}}},
      {"dense",
       3600000000000U,
       "HISTFAAAACd4nJNpmSzMwMAoxgABTFCakYGB2c1gxwIG+w9QiREOWLACAEO8Brk=",
       {{0U, 1U},   {1U, 1U},   {2U, 1U},   {3U, 1U},   {4U, 1U},   {5U, 1U},   {6U, 1U},
        {7U, 1U},   {8U, 1U},   {9U, 1U},   {10U, 1U},  {11U, 1U},  {12U, 1U},  {13U, 1U},
        {14U, 1U},  {15U, 1U},  {16U, 1U},  {17U, 1U},  {18U, 1U},  {19U, 1U},  {20U, 1U},
        {21U, 1U},  {22U, 1U},  {23U, 1U},  {24U, 1U},  {25U, 1U},  {26U, 1U},  {27U, 1U},
        {28U, 1U},  {29U, 1U},  {30U, 1U},  {31U, 1U},  {32U, 1U},  {33U, 1U},  {34U, 1U},
        {35U, 1U},  {36U, 1U},  {37U, 1U},  {38U, 1U},  {39U, 1U},  {40U, 1U},  {41U, 1U},
        {42U, 1U},  {43U, 1U},  {44U, 1U},  {45U, 1U},  {46U, 1U},  {47U, 1U},  {48U, 1U},
        {49U, 1U},  {50U, 1U},  {51U, 1U},  {52U, 1U},  {53U, 1U},  {54U, 1U},  {55U, 1U},
        {56U, 1U},  {57U, 1U},  {58U, 1U},  {59U, 1U},  {60U, 1U},  {61U, 1U},  {62U, 1U},
        {63U, 1U},  {64U, 1U},  {65U, 1U},  {66U, 1U},  {67U, 1U},  {68U, 1U},  {69U, 1U},
        {70U, 1U},  {71U, 1U},  {72U, 1U},  {73U, 1U},  {74U, 1U},  {75U, 1U},  {76U, 1U},
        {77U, 1U},  {78U, 1U},  {79U, 1U},  {80U, 1U},  {81U, 1U},  {82U, 1U},  {83U, 1U},
        {84U, 1U},  {85U, 1U},  {86U, 1U},  {87U, 1U},  {88U, 1U},  {89U, 1U},  {90U, 1U},
        {91U, 1U},  {92U, 1U},  {93U, 1U},  {94U, 1U},  {95U, 1U},  {96U, 1U},  {97U, 1U},
        {98U, 1U},  {99U, 1U},  {100U, 1U}, {101U, 1U}, {102U, 1U}, {103U, 1U}, {104U, 1U},
        {105U, 1U}, {106U, 1U}, {107U, 1U}, {108U, 1U}, {109U, 1U}, {110U, 1U}, {111U, 1U},
        {112U, 1U}, {113U, 1U}, {114U, 1U}, {115U, 1U}, {116U, 1U}, {117U, 1U}, {118U, 1U},
        {119U, 1U}, {120U, 1U}, {121U, 1U}, {122U, 1U}, {123U, 1U}, {124U, 1U}, {125U, 1U},
        {126U, 1U}, {127U, 1U}, {128U, 1U}, {129U, 1U}, {130U, 1U}, {131U, 1U}, {132U, 1U},
        {133U, 1U}, {134U, 1U}, {135U, 1U}, {136U, 1U}, {137U, 1U}, {138U, 1U}, {139U, 1U},
        {140U, 1U}, {141U, 1U}, {142U, 1U}, {143U, 1U}, {144U, 1U}, {145U, 1U}, {146U, 1U},
        {147U, 1U}, {148U, 1U}, {149U, 1U}, {150U, 1U}, {151U, 1U}, {152U, 1U}, {153U, 1U},
        {154U, 1U}, {155U, 1U}, {156U, 1U}, {157U, 1U}, {158U, 1U}, {159U, 1U}, {160U, 1U},
        {161U, 1U}, {162U, 1U}, {163U, 1U}, {164U, 1U}, {165U, 1U}, {166U, 1U}, {167U, 1U},
        {168U, 1U}, {169U, 1U}, {170U, 1U}, {171U, 1U}, {172U, 1U}, {173U, 1U}, {174U, 1U},
        {175U, 1U}, {176U, 1U}, {177U, 1U}, {178U, 1U}, {179U, 1U}, {180U, 1U}, {181U, 1U},
        {182U, 1U}, {183U, 1U}, {184U, 1U}, {185U, 1U}, {186U, 1U}, {187U, 1U}, {188U, 1U},
        {189U, 1U}, {190U, 1U}, {191U, 1U}, {192U, 1U}, {193U, 1U}, {194U, 1U}, {195U, 1U},
        {196U, 1U}, {197U, 1U}, {198U, 1U}, {199U, 1U}, {200U, 1U}, {201U, 1U}, {202U, 1U},
        {203U, 1U}, {204U, 1U}, {205U, 1U}, {206U, 1U}, {207U, 1U}, {208U, 1U}, {209U, 1U},
        {210U, 1U}, {211U, 1U}, {212U, 1U}, {213U, 1U}, {214U, 1U}, {215U, 1U}, {216U, 1U},
        {217U, 1U}, {218U, 1U}, {219U, 1U}, {220U, 1U}, {221U, 1U}, {222U, 1U}, {223U, 1U},
        {224U, 1U}, {225U, 1U}, {226U, 1U}, {227U, 1U}, {228U, 1U}, {229U, 1U}, {230U, 1U},
        {231U, 1U}, {232U, 1U}, {233U, 1U}, {234U, 1U}, {235U, 1U}, {236U, 1U}, {237U, 1U},
        {238U, 1U}, {239U, 1U}, {240U, 1U}, {241U, 1U}, {242U, 1U}, {243U, 1U}, {244U, 1U},
        {245U, 1U}, {246U, 1U}, {247U, 1U}, {248U, 1U}, {249U, 1U}, {250U, 1U}, {251U, 1U},
        {252U, 1U}, {253U, 1U}, {254U, 1U}, {255U, 1U}, {256U, 1U}, {257U, 1U}, {258U, 1U},
        {259U, 1U}, {260U, 1U}, {261U, 1U}, {262U, 1U}, {263U, 1U}, {264U, 1U}, {265U, 1U},
        {266U, 1U}, {267U, 1U}, {268U, 1U}, {269U, 1U}, {270U, 1U}, {271U, 1U}, {272U, 1U},
        {273U, 1U}, {274U, 1U}, {275U, 1U}, {276U, 1U}, {277U, 1U}, {278U, 1U}, {279U, 1U},
        {280U, 1U}, {281U, 1U}, {282U, 1U}, {283U, 1U}, {284U, 1U}, {285U, 1U}, {286U, 1U},
        {287U, 1U}, {288U, 1U}, {289U, 1U}, {290U, 1U}, {291U, 1U}, {292U, 1U}, {293U, 1U},
        {294U, 1U}, {295U, 1U}, {296U, 1U}, {297U, 1U}, {298U, 1U}, {299U, 1U}}},
      {"latencies",
       3600000000000U,
       "HISTFAAAAIN4nJNpmSzMwMAQzwABTFCakYGB2c1gxwIG+w8QgcuCF/"
       "hfsDPPYuX8wsw9gZn7DBPnHCbuX4y89xj5TzAKbmEUXsYoPoNRvI9RuoVRuka+"
       "hD9PMEMwRTBOOEo0TDRINEDcR9JL0o3fhduJ14HXjt+G14rfQtCM30zQRNBI0AgA2rwakA==",
       {{30000U, 1000U}, {30137U, 500U}, {30548U, 333U}, {31233U, 250U}, {32192U, 200U},
        {33425U, 166U},  {34932U, 142U}, {36713U, 125U}, {38768U, 111U}, {41097U, 100U},
        {43700U, 90U},   {46577U, 83U},  {49728U, 76U},  {53153U, 71U},  {56852U, 66U},
        {60825U, 62U},   {65072U, 58U},  {69593U, 55U},  {74388U, 52U},  {79457U, 50U},
        {84800U, 47U},   {90417U, 45U},  {96308U, 43U},  {102473U, 41U}, {108912U, 40U},
        {115625U, 38U},  {122612U, 37U}, {129873U, 35U}, {137408U, 34U}, {145217U, 33U},
        {153300U, 32U},  {161657U, 31U}, {170288U, 30U}, {179193U, 29U}, {188372U, 28U},
        {197825U, 27U},  {207552U, 27U}, {217553U, 26U}, {227828U, 25U}, {238377U, 25U}}},
      {"large counts",
       3600000000000U,
       "HISTFAAAADJ4nJNpmSzMwMAgzgABTFCakYGB2c1gxwIG+w8Qge1CDSDg4N0AAQLe/xgtG5gALxgNyg==",
       {{40000U, 1099511627776U}, {50000U, 4503599627370496U}, {60000U, 127U}, {70000U, 128U}}},
      {"an hour",
       3600000000000U,
       "HISTFAAAACR4nJNpmSzMwMDAzAABTFCaESjkZrBjAYP9B4jAQncWAF3fBTk=",
       {{3600000000000U, 2U}}},
      {"small range",
       1000000U,
       "HISTFAAAACR4nJNpmSzMwMDAygABTFCaEUzyOznYf4AI8LJdl+YCAFKHBB4=",
       {{7U, 3U}, {1000000U, 5U}}},
      {"whole range",
       9223372036854775807U,
       "HISTFAAAACV4nJNpmSzMwMDAwQABTFCasf4/BNh/gAowzfVkuq3GBwDukAvz",
       {{1U, 1U}, {7200000000000U, 1U}, {4611686018427400249U, 7U}}},
  };
  return vectors;
}

}  // namespace offload::metrics
