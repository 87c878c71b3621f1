
-- Packets ---------------------------------------------------------------------------------------------------------------

-- Asks for the rest of the frame at `at` and stops. Wireshark calls again when it is there.
local function ask_for_more(tvb, pinfo, tree, at, need, exact)
  local here = tvb:len() - at
  if pinfo.can_desegment > 0 and tvb:len() == tvb:reported_len() then
    pinfo.desegment_offset = at
    pinfo.desegment_len = exact and need > here and need - here or DESEGMENT_ONE_MORE_SEGMENT
    return true
  end
  local item = tree:add(respb, tvb:range(at), string.format("RESPB, the first %d bytes of a frame", here))
  item:add_proto_expert_info(experts.lost, "The rest of this frame cannot be had: cut in the capture, or reassembly is off")
  return false
end

-- Whether `bytes` are whole frames of one side, one or more, without a fault, the first being one of `kinds` if given.
local function is_whole_frames(bytes, from_client, kinds)
  local at, frames = 0, 0
  while at < #bytes do
    local frame = decode_frame(bytes, at, from_client)
    if not frame or frame.error or frames == 0 and (frame.is_zero or kinds and not kinds[frame.kind]) then
      return false
    end
    at, frames = at + frame.len, frames + 1
  end
  return frames > 0
end

-- What a client may begin with, as far as this version knows.
local FIRST_KINDS = { core = true, module = true, argv = true, passthrough = true }

-- Bytes after those that made no sense: shown as such, until a packet begins that is whole frames again.
local function is_still_lost(connection, side, tvb, pinfo, tree, bytes, at)
  local record = stream.record(pinfo, tvb, at)
  if not pinfo.visited and record.lost_in == nil then
    record.lost_in = connection.lost[side] or false
    if record.lost_in and is_whole_frames(bytes:sub(at + 1), side == "client") then
      record.lost_in, connection.lost[side] = false, nil
    end
  end
  if not record.lost_in then
    return false
  end
  local item = tree:add(respb, tvb:range(at), string.format("RESPB, %d bytes of a lost stream", tvb:len() - at))
  add_generated(item, fields.lost_in, record.lost_in)
  return true
end

-- A reply that came in slices: decoded from a buffer of its own once the last slice is there.
local function dissect_whole(connection, record, is_new, slice, tree)
  local frame = decode_frame(record.whole, 0, false)
  local tvb = ByteArray.new(record.whole, true):tvb("RESPB slices put together")
  if not frame or frame.error or frame.len ~= #record.whole or frame.channel ~= slice.channel
    or frame.kind ~= "reply" and frame.kind ~= "push" then
    local item = tree:add(respb, tvb:range(), "RESPB slices that are not one whole reply")
    item:add_proto_expert_info(experts.warning, "The slices of a channel are one whole reply or push frame (section 9.1)")
    return nil
  end
  if is_new then
    stream.note_whole(connection, frame, record)
  end
  show.frame(tree, tvb, 0, frame, record)
  return frame
end

-- The very first frame of a connection with an empty key on channel 0 (section 7.1).
local function check_zero_stream(connection, frame, record, is_new)
  if is_new and connection.frames == 0 and frame.is_zero and not frame.error then
    record.is_zero_stream = true
  end
  if record.is_zero_stream then
    frame.error, frame.error_at, frame.len = "zero-stream", 0, nil
  end
end

-- RESPB frames from `at` on; returns the lines of the Info column.
local function dissect_respb(connection, side, tvb, pinfo, tree, bytes, at)
  local lines = {}
  while at < #bytes do
    if is_still_lost(connection, side, tvb, pinfo, tree, bytes, at) then
      lines[#lines + 1] = "lost stream"
      break
    end
    local frame, missing = decode_frame(bytes, at, side == "client", stream.waiting(connection, side, pinfo, bytes, at))
    if not frame then
      stream.wait(connection, side, pinfo, missing)
      if not ask_for_more(tvb, pinfo, tree, at, missing.need, missing.exact) then
        stream.lose(connection, side, pinfo)
        lines[#lines + 1] = "cut frame"
      end
      break
    end
    local record = stream.record(pinfo, tvb, at)
    local is_new = not pinfo.visited and not record.is_noted
    check_zero_stream(connection, frame, record, is_new)
    if is_new and not frame.error then
      stream.note(connection, frame, record, side)
    end
    record.is_noted = true
    -- What belongs to a reply in slices is shown with the reply.
    local item = show.frame(tree, tvb, at, frame, frame.kind == "fragment" and {} or record)
    show.slices(item, record)
    lines[#lines + 1] = show.line(frame)
    if record.whole then
      local whole = dissect_whole(connection, record, is_new, frame, item)
      lines[#lines] = lines[#lines] .. ": " .. (whole and show.line(whole) or "not one reply")
    end
    if not frame.len then
      stream.lose(connection, side, pinfo)
      break
    end
    at = at + frame.len
  end
  return lines
end

-- Whether a RESP request is HELLO … PROTO respb (section 7.2).
local function asks_for_respb(args)
  if not args[1] or args[1]:upper() ~= "HELLO" then
    return false
  end
  for index = 3, #args - 1 do
    if args[index]:upper() == "PROTO" and args[index + 1]:lower() == "respb" then
      return true
    end
  end
  return false
end

-- Follows RESP from `at` on, up to a switch. Returns the offset behind the last whole request or reply, what more is needed, and
-- what is to be said about a switch.
local function follow_resp(connection, side, bytes, at, is_new)
  local said
  while at < #bytes and not said do
    local decode = side == "client" and resp.request or resp.reply
    local ok, len, what = pcall(decode, new_reader(bytes, at))
    if not ok then
      local stopped = type(len) == "table" and len or {}
      return at, stopped, said
    end
    at = at + len
    if side == "client" then
      connection.replies_due = connection.replies_due + (is_new and 1 or 0)
      if asks_for_respb(what) then
        said = "asked for, by HELLO with PROTO respb"
        connection.switch = connection.switch or connection.replies_due
      end
    elseif what ~= ">" and is_new then
      connection.replies_due = connection.replies_due - 1
      connection.switch = connection.switch and connection.switch - 1
      if connection.switch == 0 then
        local is_map = what == "%" or what == "*"
        said = is_map and "agreed to, from here on in both directions" or "refused"
        connection.switch = is_map and 0 or nil
        connection.protocol.server = is_map and "respb" or "resp"
      end
    end
  end
  return at, nil, said
end

-- Wireshark's dissector for RESP, while the port is still its own. There is none in versions before 4.0.
local wireshark_resp = DissectorTable.get("tcp.port"):get_dissector(6379)

-- Gives a run of RESP to Wireshark's own dissector for it, so that a plain RESP stream looks as if this script were not there.
local function show_resp(tvb, pinfo, tree, at, stop, said)
  if stop > at and wireshark_resp then
    -- It raises an error on what it calls malformed.
    if not pcall(wireshark_resp.call, wireshark_resp, tvb:range(at, stop - at):tvb(), pinfo, tree) then
      tree:add(tvb:range(at, stop - at), "[Malformed RESP]")
    end
  elseif stop > at then
    pinfo.cols.protocol:set("RESP")
    tree:add(tvb:range(at, stop - at), string.format("RESP, %d bytes", stop - at))
  end
  if said then
    pinfo.cols.protocol:set("RESPB")
    pinfo.cols.info:append(" | RESPB " .. said)
    pinfo.cols.info:fence()
    local item = tree:add(respb, tvb:range(at, stop - at), "RESPB " .. said)
    item:add(fields.switch, tvb:range(at, stop - at), said)
    item:add_proto_expert_info(experts.switch, "RESPB " .. said)
  end
end

-- RESP from `at` on; returns the offset at which RESPB begins, or nothing.
local function dissect_resp(connection, side, tvb, pinfo, tree, bytes, at)
  local record = stream.record(pinfo, tvb, at)
  if not record.resp_stop then
    record.resp_stop, record.resp_need, record.resp_said = follow_resp(connection, side, bytes, at, not pinfo.visited)
  end
  local stop, stopped = record.resp_stop, record.resp_need
  local can_wait = pinfo.can_desegment > 0 and tvb:len() == tvb:reported_len()
  if stopped and not (stopped.need and can_wait) then
    -- Not RESP, or not from a beginning, or cut: all of it is the other dissector's, as without this script.
    stop, stopped = #bytes, nil
  end
  show_resp(tvb, pinfo, tree, at, stop, record.resp_said)
  if stopped then
    ask_for_more(tvb, pinfo, tree, stop, stopped.need, stopped.exact)
    return nil
  end
  return stop < #bytes and stop or nil
end

-- Everything that TCP hands on; returns 0 when it is not ours.
local function dissect(tvb, pinfo, tree)
  local bytes = tvb:raw()
  if #bytes == 0 then
    return 0
  end
  local connection = stream.connection(pinfo)
  local start = stream.record(pinfo, tvb, 0)
  start.side = start.side or (stream.from_client(connection, pinfo, bytes) and "client" or "server")
  local side = start.side
  start.protocol = start.protocol or stream.protocol(connection, side, bytes, 0)
  if not start.protocol then
    return 0
  end
  local at = 0
  if start.protocol == "resp" then
    at = dissect_resp(connection, side, tvb, pinfo, tree, bytes, 0)
  end
  local lines = at and dissect_respb(connection, side, tvb, pinfo, tree, bytes, at) or {}
  if #lines > 0 then
    show.info(pinfo, lines)
  end
  return tvb:len()
end

function respb.dissector(tvb, pinfo, tree)
  return dissect(tvb, pinfo, tree)
end

-- By the first bytes, for connections of other ports: whole requests without a fault, or a RESP client that asks for RESPB. A
-- stream of replies alone is not taken: `Decode As` it.
local function is_respb(tvb)
  local bytes = tvb:raw()
  if #bytes < 4 then
    return false
  end
  local first = bytes:byte()
  if first == 0x2A then
    local ok, _, args = pcall(resp.request, new_reader(bytes, 0))
    return ok and asks_for_respb(args)
  end
  return (first <= 0x07 or first >= 0xF0) and is_whole_frames(bytes, true, FIRST_KINDS)
end

local function heuristic(tvb, pinfo, tree)
  if not is_respb(tvb) then
    return false
  end
  dissect(tvb, pinfo, tree)
  pinfo.conversation = respb
  return true
end

-- Ports -----------------------------------------------------------------------------------------------------------------

local tcp_ports = DissectorTable.get("tcp.port")
local registered

-- The ports of a range such as `6379,7000-7005`.
local function ports_of(range)
  local ports = {}
  for first, last in tostring(range):gmatch("(%d+)%-?(%d*)") do
    for port = tonumber(first), tonumber(last) or tonumber(first) do
      ports[port] = true
    end
  end
  return ports
end

-- Takes the ports of the preferences, and gives 6379 back to Wireshark's RESP dissector when it is no longer among them.
local function take_ports()
  local range = tostring(respb.prefs.ports)
  if registered == range then
    return
  end
  for port in pairs(server_ports) do
    tcp_ports:remove(port, respb)
  end
  server_ports = ports_of(range)
  if not server_ports[6379] and wireshark_resp then
    tcp_ports:add(6379, wireshark_resp)
  end
  for port in pairs(server_ports) do
    tcp_ports:add(port, respb)
  end
  registered = range
end

function respb.prefs_changed()
  text.argument_bytes_max = respb.prefs.argument_bytes
  text.arguments_max = respb.prefs.arguments
  take_ports()
end

function respb.init()
  stream.forget()
end

take_ports()
tcp_ports:add_for_decode_as(respb)
respb:register_heuristic("tcp", heuristic)
