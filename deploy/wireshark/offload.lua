-- A Wireshark dissector for the frames of clients and offload-server, over TCP and UDP, and for the connections of
-- offload-server and offload-worker over TCP (docs/reference/wire-protocol.md). Installed in Wireshark's folder of
-- plugins it is loaded by itself; otherwise: tshark -X lua_script:offload.lua. Runs with Lua 5.2 to 5.4.

local clients = Proto("offload", "Offload frames")
local workers = Proto("offload_worker", "Offload server and worker")

local HEADER = 12
local LONGEST_MESSAGE = 16 * 1024 * 1024 -- the highest --max-message-length
local LONGEST_CONTROL = 1024
local LONGEST_BATCH, MOST_OF_BATCH = 5120, 64
local CONTROL_VERSION = 4
local REQUEST, RESPONSE, ERROR = 4, 5, 6
local HELLO, ATTACH_CHANNEL, CHANNEL_ATTACHED = 16, 22, 23

local MESSAGES = {
  [0] = "start_shutdown", [1] = "shutdown_complete", [2] = "exchange_consumer_id_request",
  [3] = "exchange_consumer_id_response", [4] = "request", [5] = "response", [6] = "error", [16] = "hello",
  [17] = "welcome", [18] = "channel_descriptor", [19] = "keep_alive", [22] = "attach_channel",
  [23] = "channel_attached", [24] = "detach", [25] = "assignment", [26] = "user_message",
}
local CODES = {
  [1] = "frame_too_short", [2] = "frame_too_long", [3] = "length_mismatch", [4] = "unknown_message",
  [5] = "misplaced_message", [6] = "worker_unavailable", [7] = "shutting_down", [8] = "worker_failed",
  [9] = "bad_version", [10] = "bad_hello", [11] = "busy", [13] = "request_timed_out", [14] = "worker_stuck",
  [20] = "out_of_memory", [21] = "frame_timed_out", [22] = "idle_timed_out", [23] = "too_many_clients",
  [24] = "too_many_of_address", [25] = "tls_required",
}
-- Errors that take the place of a response; the others end the connection.
local IN_PLACE_OF_RESPONSE = { [6] = true, [7] = true, [8] = true, [13] = true }
local REASONS = { [0] = "the server exits", [1] = "it asks its workers to exit with it", [2] = "the worker is let go" }
local STATUSES = { [0] = "ok", [1] = "refused" }

local f = {
  wire_size = ProtoField.uint32("offload.wire_size", "Bytes of the frame"),
  msg_id = ProtoField.uint32("offload.msg_id", "Message", base.DEC, MESSAGES),
  length = ProtoField.uint32("offload.length", "Bytes of payload"),
  payload = ProtoField.bytes("offload.payload", "Payload"),
  code = ProtoField.uint32("offload.error.code", "Code", base.DEC, CODES),
  text = ProtoField.string("offload.error.text", "Text", base.UNICODE),
  sequence = ProtoField.uint64("offload.sequence", "Sequence of the datagram"),
  number = ProtoField.uint32("offload.number", "Number on this connection, from 0"),
  request_in = ProtoField.framenum("offload.request_in", "Answers the request in", base.NONE, frametype.REQUEST),
  response_in = ProtoField.framenum("offload.response_in", "Is answered in", base.NONE, frametype.RESPONSE),
  time = ProtoField.double("offload.time", "Seconds since the request"),
}
local bad_frame = ProtoExpert.new("offload.malformed", "Malformed frame", expert.group.MALFORMED,
  expert.severity.ERROR)
local refused = ProtoExpert.new("offload.refused", "Error frame", expert.group.RESPONSE_CODE, expert.severity.WARN)
local cut = ProtoExpert.new("offload.cut", "Captured partly", expert.group.UNDECODED, expert.severity.NOTE)
clients.fields, clients.experts = f, { bad_frame, refused, cut }
clients.prefs.longest = Pref.uint("Longest payload", LONGEST_MESSAGE,
  "--max-message-length of the server, in bytes: a longer payload is malformed")

local w = {
  magic = ProtoField.string("offload_worker.magic", "Magic"),
  version = ProtoField.uint16("offload_worker.version", "Control version"),
  capabilities = ProtoField.uint32("offload_worker.capabilities", "Capabilities", base.HEX),
  rings_doorbell = ProtoField.bool("offload_worker.capabilities.rings_doorbell", "Rings the response doorbell", 32,
    nil, 1),
  stands_by = ProtoField.bool("offload_worker.capabilities.stands_by", "Stands by", 32, nil, 2),
  replaces = ProtoField.bool("offload_worker.capabilities.replaces", "Replaces the oldest worker", 32, nil, 4),
  writes_slots = ProtoField.bool("offload_worker.capabilities.writes_slots", "Writes slots", 32, nil, 8),
  max_channels = ProtoField.uint32("offload_worker.max_channels", "Most channels"),
  channel_count = ProtoField.uint16("offload_worker.channel_count", "Channels"),
  keep_alive_ms = ProtoField.uint32("offload_worker.keep_alive_ms", "Keep-alive interval, milliseconds"),
  backend = ProtoField.string("offload_worker.backend", "Back end"),
  service = ProtoField.string("offload_worker.service", "Service"),
  service_number = ProtoField.uint8("offload_worker.service_number", "Service's number"),
  channel = ProtoField.uint32("offload_worker.channel", "Channel"),
  depth = ProtoField.uint32("offload_worker.depth", "Depth"),
  max_message_length = ProtoField.uint32("offload_worker.max_message_length", "Longest message"),
  max_response_length = ProtoField.uint32("offload_worker.max_response_length", "Longest response"),
  access = ProtoField.bytes("offload_worker.access", "Access to the requests"),
  response_access = ProtoField.bytes("offload_worker.response_access", "Access to the responses"),
  consumer_id = ProtoField.uint32("offload_worker.consumer_id", "Consumer id"),
  keep_alive = ProtoField.uint64("offload_worker.keep_alive", "Keep-alive"),
  taken = ProtoField.uint32("offload_worker.taken", "Messages taken"),
  user_bytes = ProtoField.bytes("offload_worker.user_bytes", "Bytes of the application"),
  channels = ProtoField.uint32("offload_worker.channels", "Channels whose requests the worker gets"),
  reason = ProtoField.uint8("offload_worker.reason", "Reason", base.DEC, REASONS),
  token = ProtoField.bytes("offload_worker.token", "Token"),
  endpoint = ProtoField.bytes("offload_worker.endpoint", "Endpoint"),
  sequence = ProtoField.uint64("offload_worker.sequence", "Sequence"),
  content_length = ProtoField.uint32("offload_worker.content_length", "Bytes of the content"),
  count = ProtoField.uint16("offload_worker.count", "Messages of the batch; 0: one message"),
  status = ProtoField.uint16("offload_worker.status", "Status", base.DEC, STATUSES),
  message_length = ProtoField.uint16("offload_worker.message_length", "Bytes of the message"),
  message = ProtoField.bytes("offload_worker.message", "Message"),
}
local bad_message = ProtoExpert.new("offload_worker.malformed", "Malformed message", expert.group.MALFORMED,
  expert.severity.ERROR)
workers.fields, workers.experts = w, { bad_message }

local stream_field = Field.new("tcp.stream")

-- What is known of each TCP connection, by its number.
local streams = {}
function clients.init() streams = {} end

local function stream_of()
  local number = stream_field().value
  streams[number] = streams[number] or { requests = {}, answers = {}, seen = {}, next = 0, answered = 0 }
  return streams[number]
end

local function place(address, port) return tostring(address) .. " " .. port end

-- Adds `words` to the column of the packet, behind those of the frames before it.
local function tell(pinfo, words)
  pinfo.cols.info:append(pinfo.private.offload_told == tostring(pinfo.number) and ", " .. words or words)
  pinfo.private.offload_told = tostring(pinfo.number)
  pinfo.cols.info:fence()
end

local function fault(item, pinfo, which, words)
  item:add_proto_expert_info(which, words)
  tell(pinfo, "[Malformed: " .. words .. "]")
end

-- Returns the range of the bytes, without those that were not captured; nil if none is left.
local function range(tvb, offset, length)
  length = math.min(length, tvb:len() - offset)
  if length <= 0 then return nil end
  return tvb(offset, length)
end

local function add(tree, field, bytes)
  if bytes then return tree:add(field, bytes) end
end

-- Shows the number of a request or its answer on the connection, and the packet of the other.
local function match(tvb, pinfo, tree, kind)
  local stream = stream_of()
  local key = pinfo.number .. "/" .. tvb:offset()
  local number = stream.seen[key]
  if number == nil and not pinfo.visited then
    local counter = kind == "request" and "next" or "answered"
    number = stream[counter]
    stream[counter] = number + 1
    stream.seen[key] = number
    stream[kind == "request" and "requests" or "answers"][number] = { packet = pinfo.number, time = pinfo.rel_ts }
  end
  if number == nil then return end
  tree:add(f.number, number):set_generated()
  local request, answer = stream.requests[number], stream.answers[number]
  if kind == "request" and answer then
    tree:add(f.response_in, answer.packet):set_generated()
  elseif kind ~= "request" and request then
    tree:add(f.request_in, request.packet):set_generated()
    tree:add(f.time, pinfo.rel_ts - request.time):set_generated()
  end
end

-- Shows the header at `offset`; returns the item and the fields, or nil if it is no frame's, which is then said.
local function add_header(tvb, offset, pinfo, tree, proto, malformed, longest)
  local size = tvb(offset, 4):uint()
  local item = tree:add(proto, range(tvb, offset, tvb:len() - offset))
  item:add(f.wire_size, tvb(offset, 4))
  if size < HEADER then
    return nil, fault(item, pinfo, malformed, "frame_too_short: wire_size " .. size .. " is less than 12")
  end
  if size - HEADER > longest then
    return nil, fault(item, pinfo, malformed, "frame_too_long: a payload of " .. size - HEADER .. " bytes, of " ..
      longest .. " at most")
  end
  if tvb:len() < offset + HEADER then return nil, item:add_proto_expert_info(cut) end
  local id, length = tvb(offset + 4, 4):uint(), tvb(offset + 8, 4):uint()
  item:add(f.msg_id, tvb(offset + 4, 4))
  item:add(f.length, tvb(offset + 8, 4))
  if size ~= HEADER + length then
    return nil, fault(item, pinfo, malformed, "length_mismatch: wire_size " .. size .. " is not 12 + " .. length)
  end
  if not MESSAGES[id] then
    return nil, fault(item, pinfo, malformed, "unknown_message: msg_id " .. id)
  end
  item:set_len(math.min(size, tvb:len() - offset))
  item:append_text(", " .. MESSAGES[id] .. ", " .. length .. " bytes")
  if tvb:len() < offset + size then item:add_proto_expert_info(cut) end
  return item, id, length
end

local function add_error(tvb, offset, length, pinfo, item, malformed)
  if length < 4 then return fault(item, pinfo, malformed, "an error without a code") end
  local bytes = range(tvb, offset, 4)
  if not bytes or bytes:len() < 4 then return end
  local code = bytes:uint()
  local text = range(tvb, offset + 4, length - 4)
  item:add(f.code, bytes)
  if text then item:add_packet_field(f.text, text, ENC_UTF_8) end
  item:add_proto_expert_info(refused, (CODES[code] or "code " .. code) .. (text and ": " .. text:string() or ""))
  return code
end

-- One frame of a client or for a client; `over_tcp`, else in a datagram.
local function dissect_frame(tvb, offset, pinfo, tree, over_tcp)
  local item, id, length = add_header(tvb, offset, pinfo, tree, clients, bad_frame, clients.prefs.longest)
  if not item then return end
  local stream = over_tcp and stream_of()
  if id < REQUEST or id > ERROR then
    return fault(item, pinfo, bad_frame, "misplaced_message: " .. MESSAGES[id])
  end
  if stream then
    local source, target = place(pinfo.src, pinfo.src_port), place(pinfo.dst, pinfo.dst_port)
    if id == REQUEST and not stream.server then stream.server = target end
    if stream.server and (id == REQUEST) ~= (stream.server == target) then
      return fault(item, pinfo, bad_frame, "misplaced_message: " .. MESSAGES[id] ..
        (stream.server == source and " from the server" or " from the client"))
    end
  end
  if id == ERROR then
    local code = add_error(tvb, offset + HEADER, length, pinfo, item, bad_frame)
    if not code then return end
    tell(pinfo, "error " .. (CODES[code] or code))
    if stream and IN_PLACE_OF_RESPONSE[code] then match(tvb, pinfo, item, "error") end
  else
    add(item, f.payload, range(tvb, offset + HEADER, length))
    tell(pinfo, MESSAGES[id] .. " " .. length .. " bytes")
    if stream then match(tvb, pinfo, item, MESSAGES[id]) end
  end
end

-- The rest of a stream behind a frame that has no valid length cannot be divided into frames.
local function length_of_frame(tvb, offset, longest)
  local size = tvb(offset, 4):uint()
  if size < HEADER or size - HEADER > longest then return tvb:reported_length_remaining(offset) end
  return size
end

-- Whether a record of TLS begins here.
local function is_tls(tvb)
  return tvb:len() >= 3 and tvb(0, 1):uint() >= 20 and tvb(0, 1):uint() <= 23 and tvb(1, 1):uint() == 3
end

local function dissect_datagram(tvb, pinfo, tree)
  pinfo.cols.protocol = "OFFLOAD"
  pinfo.cols.info:clear()
  if tvb:len() < 8 + HEADER then
    fault(tree:add(clients, tvb()), pinfo, bad_frame, "a datagram of less than 20 bytes")
  else
    tree:add(clients, tvb(0, 8), "Offload datagram"):add(f.sequence, tvb(0, 8))
    dissect_frame(tvb, 8, pinfo, tree, false)
  end
  return tvb:len()
end

function clients.dissector(tvb, pinfo, tree)
  if pinfo.port_type == 3 then return dissect_datagram(tvb, pinfo, tree) end -- UDP's number in Wireshark
  if is_tls(tvb) then return Dissector.get("tls"):call(tvb, pinfo, tree) end
  pinfo.cols.protocol = "OFFLOAD"
  if pinfo.private.offload_told ~= tostring(pinfo.number) then pinfo.cols.info:clear() end
  dissect_tcp_pdus(tvb, tree, 4,
    function(stream, _, offset) return length_of_frame(stream, offset, clients.prefs.longest) end,
    function(frame, of, root)
      dissect_frame(frame, 0, of, root, true)
      return frame:len()
    end)
  return tvb:len()
end

-- ---- Server and worker

-- Shows the fields of a message one after the other, and stops at the end of its payload.
local Fields = {}
Fields.__index = Fields

function Fields:take(length)
  if self.short or length > self.limit - self.at or self.at + length > self.tvb:len() then
    self.short = true
    return nil
  end
  self.at = self.at + length
  return length > 0 and self.tvb(self.at - length, length) or nil
end

function Fields:show(field, length)
  local bytes = self:take(length)
  return bytes, add(self.item, field, bytes)
end

function Fields:bytes(field, bytes_of_length)
  local length = self:take(bytes_of_length)
  if length then return (self:show(field, length:uint())) end
end

function Fields:services()
  local count = self:take(1)
  for _ = 1, count and count:uint() or 0 do
    if self.short then return end
    self:bytes(w.service, 1)
  end
end

local SHOW = {
  [HELLO] = function(fields)
    fields:show(w.magic, 4)
    local version = fields:show(w.version, 2)
    if not version or version:uint() ~= CONTROL_VERSION then return true end
    local capabilities, item = fields:show(w.capabilities, 4)
    if capabilities then
      for _, bit in ipairs { w.rings_doorbell, w.stands_by, w.replaces, w.writes_slots } do
        item:add(bit, capabilities)
      end
    end
    fields:show(w.max_channels, 4)
    fields:show(w.max_message_length, 4)
    fields:bytes(w.backend, 1)
    fields:services()
  end,
  [17] = function(fields)
    local version = fields:show(w.version, 2)
    if not version or version:uint() ~= CONTROL_VERSION then return true end
    fields:show(w.channel_count, 2)
    fields:show(w.keep_alive_ms, 4)
    fields:services()
  end,
  [18] = function(fields)
    fields:show(w.channel, 4)
    fields:show(w.depth, 4)
    fields:show(w.max_message_length, 4)
    fields:bytes(w.access, 2)
    fields:bytes(w.response_access, 2)
    fields:show(w.max_response_length, 4)
    fields:show(w.service_number, 1)
  end,
  [2] = function(fields)
    fields:show(w.channel, 4)
    fields:show(w.consumer_id, 4)
  end,
  [19] = function(fields) fields:show(w.keep_alive, 8) end,
  [26] = function(fields)
    fields:show(w.taken, 4)
    fields:bytes(w.user_bytes, 2)
  end,
  [25] = function(fields) fields:show(w.channels, 4) end,
  [24] = function() end,
  -- A server says why; the same message of a worker is empty.
  [0] = function(fields)
    if fields.limit > fields.at then fields:show(w.reason, 1) end
  end,
  [1] = function() end,
  [ATTACH_CHANNEL] = function(fields)
    fields:show(w.channel, 4)
    fields:show(w.token, 16)
    fields:bytes(w.endpoint, 2)
  end,
  [CHANNEL_ATTACHED] = function(fields) fields:show(w.endpoint, fields.limit - fields.at) end,
}
SHOW[3] = SHOW[2]

local function dissect_control(tvb, pinfo, tree)
  local item, id, length = add_header(tvb, 0, pinfo, tree, workers, bad_message, LONGEST_CONTROL)
  if not item then return end
  if id == ERROR then
    local code = add_error(tvb, HEADER, length, pinfo, item, bad_message)
    if code then tell(pinfo, "error " .. (CODES[code] or code)) end
    return
  end
  if not SHOW[id] then return fault(item, pinfo, bad_message, "misplaced_message: " .. MESSAGES[id]) end
  local fields = setmetatable({ tvb = tvb, item = item, at = HEADER, limit = HEADER + length }, Fields)
  local of_other_version = SHOW[id](fields)
  tell(pinfo, MESSAGES[id])
  if fields.short then
    fault(item, pinfo, bad_message, "the payload of " .. MESSAGES[id] .. " is too short")
  elseif fields.at < fields.limit and not of_other_version then
    fault(item, pinfo, bad_message, "the payload of " .. MESSAGES[id] .. " is too long")
  end
end

-- The table of lengths of a batch of requests, and its messages. Returns what is wrong.
local function add_requests(tvb, count, item)
  local at = 16 + 2 * count
  for number = 0, count - 1 do
    local length = tvb(16 + 2 * number, 2)
    if at + length:le_uint() > tvb:len() then return "a message longer than its batch" end
    item:add_le(w.message_length, length)
    add(item, w.message, range(tvb, at, length:le_uint()))
    at = at + length:le_uint()
  end
  if at < tvb:len() then return "bytes behind the last message" end
end

local function add_responses(tvb, count, pinfo, item)
  local at = 16
  for _ = 1, count do
    if at + HEADER > tvb:len() then return "fewer frames than its count" end
    local frame, id, length = add_header(tvb, at, pinfo, item, clients, bad_frame, LONGEST_BATCH)
    if not frame then return "a malformed frame" end
    if at + HEADER + length > tvb:len() then return "a frame longer than its batch" end
    if id ~= RESPONSE and (id ~= ERROR or length > 0) then return "a frame that is no response" end
    add(frame, f.payload, range(tvb, at + HEADER, length))
    at = at + HEADER + length
  end
  if at < tvb:len() then return "bytes behind the last frame" end
end

local function dissect_content(tvb, pinfo, tree, stream)
  local from_server = place(pinfo.src, pinfo.src_port) == stream.server
  local item = tree:add(workers, tvb())
  local length, count = tvb(8, 4):uint(), tvb(12, 2):uint()
  local kind = from_server and "requests" or "responses"
  item:append_text(", " .. kind)
  item:add(w.sequence, tvb(0, 8))
  item:add(w.content_length, tvb(8, 4))
  item:add(w.count, tvb(12, 2))
  item:add(w.status, tvb(14, 2))
  tell(pinfo, (count == 0 and kind:sub(1, -2) or count .. " " .. kind) .. ", " .. length .. " bytes")
  local wrong
  if count == 0 then
    add(item, w.message, range(tvb, 16, length))
  elseif count > MOST_OF_BATCH or length > LONGEST_BATCH or 2 * count > length then
    wrong = "a batch of " .. count .. " messages in " .. length .. " bytes"
  elseif tvb:len() < 16 + length then
    item:add_proto_expert_info(cut)
  elseif from_server then
    wrong = add_requests(tvb, count, item)
  else
    wrong = add_responses(tvb, count, pinfo, item)
  end
  if wrong then fault(item, pinfo, bad_message, wrong) end
end

-- Whether the next bytes of the connection are a content. A connection of a channel begins with one message each way;
-- the upper half of a content's sequence is 0 for its first 2^32 slots, and no frame's length is.
local function is_content(tvb, offset, stream) return stream.is_channel and tvb(offset, 4):uint() == 0 end

function workers.dissector(tvb, pinfo, tree)
  if is_tls(tvb) then return Dissector.get("tls"):call(tvb, pinfo, tree) end
  pinfo.cols.protocol = "OFFLOAD-WORKER"
  if pinfo.private.offload_told ~= tostring(pinfo.number) then pinfo.cols.info:clear() end
  local stream = stream_of()
  dissect_tcp_pdus(tvb, tree, HEADER,
    function(bytes, of, offset)
      local id = bytes(offset + 4, 4):uint()
      if not is_content(bytes, offset, stream) and (id == HELLO or id == ATTACH_CHANNEL) and not stream.server then
        stream.server = place(of.dst, of.dst_port)
        stream.is_channel = id == ATTACH_CHANNEL
      end
      if not is_content(bytes, offset, stream) then return length_of_frame(bytes, offset, LONGEST_CONTROL) end
      local length = bytes(offset + 8, 4):uint()
      return length <= LONGEST_MESSAGE and 16 + length or bytes:reported_length_remaining(offset)
    end,
    function(bytes, of, root)
      if is_content(bytes, 0, stream) and bytes:len() >= 16 then
        dissect_content(bytes, of, root, stream)
      else
        dissect_control(bytes, of, root)
      end
      return bytes:len()
    end)
  return tvb:len()
end

-- ---- Which connections these are: by their first bytes, or by the port

local function header_at(tvb, offset)
  if tvb:len() < offset + HEADER then return nil end
  local size, id, length = tvb(offset, 4):uint(), tvb(offset + 4, 4):uint(), tvb(offset + 8, 4):uint()
  if size == HEADER + length and length <= LONGEST_MESSAGE then return id, length end
end

clients:register_heuristic("tcp", function(tvb, pinfo, tree)
  local id = header_at(tvb, 0)
  if id ~= REQUEST and id ~= RESPONSE and id ~= ERROR then return false end
  pinfo.conversation = clients
  clients.dissector(tvb, pinfo, tree)
  return true
end)

workers:register_heuristic("tcp", function(tvb, pinfo, tree)
  local id, length = header_at(tvb, 0)
  local greets = id == HELLO and tvb:len() >= HEADER + 4 and tvb(HEADER, 4):string() == "OFLD"
  if not greets and not (id == ATTACH_CHANNEL and length >= 22 and length <= LONGEST_CONTROL) then return false end
  pinfo.conversation = workers
  workers.dissector(tvb, pinfo, tree)
  return true
end)

clients:register_heuristic("udp", function(tvb, pinfo, tree)
  local id, length = header_at(tvb, 8)
  if (id ~= REQUEST and id ~= RESPONSE and id ~= ERROR) or tvb:reported_len() ~= 8 + HEADER + length then
    return false
  end
  dissect_datagram(tvb, pinfo, tree)
  return true
end)

DissectorTable.get("tcp.port"):add(12345, clients) -- offload-server's default
DissectorTable.get("udp.port"):add_for_decode_as(clients)
DissectorTable.get("tcp.port"):add_for_decode_as(workers)
DissectorTable.get("tls.port"):add(12345, clients)
