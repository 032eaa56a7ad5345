#include "protocol/other_protocols.hpp"

#include <gtest/gtest.h>

#include "protocol/frame.hpp"
#include "tests/support/bytes.hpp"

namespace offload::protocol {
namespace {

using support::bytes;
using support::bytes_of;

TEST(OtherProtocols, HttpIsKnownByItsMethod) {
  for (const char* begin :
       {"GET / HTTP/1.1\r\n", "HEAD / HTTP/1.1", "POST /x", "PUT /x", "DELETE /", "CONNECT a:1",
        "OPTIONS *", "TRACE /", "PATCH /", "PRI * HTTP/2.0", "HTTP/1.1 400 Bad Request"}) {
    EXPECT_EQ(recognise(bytes_of(begin)), OtherProtocol::http) << begin;
    EXPECT_EQ(parse_frame(bytes_of(begin), ~0U >> 4U).state, FrameView::State::bad) << begin;
  }
  EXPECT_EQ(recognise(bytes_of("GET ")), OtherProtocol::http);
  for (const char* begin : {"GETS", "get / HTTP/1.1", "GET", ""}) {
    EXPECT_EQ(recognise(bytes_of(begin)), OtherProtocol::none) << begin;
  }
}

TEST(OtherProtocols, TlsIsKnownByItsRecord) {
  EXPECT_EQ(recognise(bytes({22, 3, 1, 2, 0, 1})), OtherProtocol::tls);
  EXPECT_EQ(recognise(bytes({21, 3, 3, 0, 2, 2, 70})), OtherProtocol::tls);
  EXPECT_EQ(recognise(bytes({22, 3, 1})), OtherProtocol::none);
  EXPECT_EQ(recognise(bytes({22, 2, 1, 2})), OtherProtocol::none);
  EXPECT_EQ(recognise(bytes({23, 3, 3, 0})), OtherProtocol::none);
}

TEST(OtherProtocols, AFrameIsNone) {
  EXPECT_EQ(recognise(make_frame(MessageId::client_request, bytes_of("GET / HTTP/1.1"))),
            OtherProtocol::none);
}

}  // namespace
}  // namespace offload::protocol
