
-- Connections, channels, requests and their replies ----------------------------------------------------------------------
--
-- All of this is learned in Wireshark's first pass over a capture, in which packets come in order; when a packet is
-- shown again, its records are looked up by their place.

local stream = {}

local connections, records = {}, {}

-- Ports of servers, from the preferences.
local server_ports = {}

local tcp_stream = Field.new("tcp.stream")

-- Before every first pass.
function stream.forget()
  connections, records = {}, {}
end

-- What tells connections apart: TCP's number, which is there only when a tree is built, else both addresses and ports.
-- It is the same for all packets of a pass, and what is shown later stands in the records.
local function connection_key(pinfo)
  local index = tcp_stream()
  if index then
    return index.value
  end
  local source = tostring(pinfo.src) .. " " .. pinfo.src_port
  local target = tostring(pinfo.dst) .. " " .. pinfo.dst_port
  return source < target and source .. " " .. target or target .. " " .. source
end

-- The connection of this packet. Members: `client` (address and port), `protocol` of each side ("resp" or "respb"),
-- `lost` of each side (the packet in which its bytes ceased to make sense), `channels`, `frames`.
function stream.connection(pinfo)
  local key = connection_key(pinfo)
  if not connections[key] then
    connections[key] = { protocol = {}, waiting = {}, lost = {}, channels = {}, frames = 0, replies_due = 0 }
  end
  return connections[key]
end

-- What first bytes say: the protocol, and whether a client sent them. Neither for what is no protocol of ours (section 7.1).
local function first_bytes(bytes, base)
  local first = bytes:byte(base + 1)
  if first <= 0x07 or first == 0xF0 then
    return "respb", true
  elseif first >= 0x80 and first <= 0x83 then
    return "respb", false
  elseif first >= 0xF0 then
    return "respb", nil
  elseif bytes:find("^%*%d+\r\n%$", base + 1) or bytes:find("^[A-Za-z]", base + 1) then
    return "resp", true
  elseif bytes:find("^[-+:$%%]", base + 1) then
    return "resp", false
  elseif bytes:find("^[*_#,~>(!=|\r\n \t]", base + 1) then
    return "resp", nil
  end
end

-- Whether this packet goes to the server: by the port, else as its first bytes or those of an earlier packet say.
function stream.from_client(connection, pinfo, bytes)
  local source = tostring(pinfo.src) .. " " .. pinfo.src_port
  local target = tostring(pinfo.dst) .. " " .. pinfo.dst_port
  if not connection.client then
    local to_server, to_client = server_ports[pinfo.dst_port], server_ports[pinfo.src_port]
    local _, says_client = first_bytes(bytes, 0)
    if to_server ~= to_client then
      connection.client = to_server and source or target
    elseif says_client ~= nil then
      connection.client = says_client and source or target
    else
      return pinfo.src_port > pinfo.dst_port
    end
  end
  return connection.client == source
end

-- The protocol of what a side sends from `base` on; none when it is not ours.
function stream.protocol(connection, side, bytes, base)
  local known, other = connection.protocol[side], connection.protocol[side == "client" and "server" or "client"]
  if known == "resp" and connection.switch and first_bytes(bytes, base) == "respb" then
    connection.protocol[side] = "respb"
  elseif not known then
    connection.protocol[side] = other or first_bytes(bytes, base)
  end
  return connection.protocol[side]
end

-- The record of the frame at `at` of `tvb`: made in the first pass, looked up later. A packet can hold the end of a
-- segmented frame, which is shown from a buffer of its own at offset 0, and others, which are shown from the packet and
-- begin behind its headers. The buffers' lengths are no part of the place: they differ between the passes.
function stream.record(pinfo, tvb, at)
  local key = string.format("%d:%d", pinfo.number, tvb:offset() + at)
  if pinfo.visited or records[key] then
    return records[key] or {}
  end
  records[key] = { number = pinfo.number, seconds = pinfo.rel_ts }
  return records[key]
end

-- From this packet on, what a side sends makes no sense.
function stream.lose(connection, side, pinfo)
  if not pinfo.visited then
    connection.lost[side] = connection.lost[side] or pinfo.number
  end
end

-- Keeps the decoder of a frame that is not whole, for the next packet of the first pass.
function stream.wait(connection, side, pinfo, missing)
  connection.waiting[side] = not pinfo.visited and missing.thread and missing or nil
end

-- The decoder that waits for the rest of what begins at `at`: the same bytes, and more than it had.
function stream.waiting(connection, side, pinfo, bytes, at)
  local waiting = connection.waiting[side]
  connection.waiting[side] = nil
  if not waiting or pinfo.visited then
    return nil
  end
  local reader = waiting.reader
  local had = reader.available
  local head = math.min(had, 16)
  if #bytes - at <= had or bytes:sub(at + 1, at + head) ~= reader.bytes:sub(reader.base + 1, reader.base + head) then
    return nil
  end
  return waiting
end

local function channel_of(connection, number)
  local channel = connection.channels[number]
  if not channel then
    channel = { sequence = 0, first = 1, last = 0, pending = {}, slices = {}, closed = {} }
    connection.channels[number] = channel
  end
  return channel
end

local function note_request(channel, record)
  if channel.closed.server or channel.closed.client then
    record.discarded = true
    return
  end
  record.sequence = channel.sequence
  channel.sequence = (channel.sequence + 1) % 2 ^ 32
  channel.last = channel.last + 1
  channel.pending[channel.last] = record
end

local function note_reply(channel, record)
  if channel.closed.client then
    record.discarded = true
    return
  end
  local asked = channel.pending[channel.first]
  if not asked then
    record.unmatched = true
    return
  end
  channel.pending[channel.first] = nil
  channel.first = channel.first + 1
  record.request, record.sequence = asked, asked.sequence
  asked.response = record.number
end

-- A slice of a reply (section 9.1). With the last one the record has all of them.
local function note_fragment(channel, record, frame)
  record.group = channel.slices.group or { numbers = {} }
  channel.slices.group = record.group
  table.insert(channel.slices, frame.slice)
  table.insert(record.group.numbers, record.number)
  if frame.is_last then
    record.group.number = record.number
    record.whole = table.concat(channel.slices)
    channel.slices = {}
  end
end

-- CLOSE (section 8.4): what waits is void; once both sides have sent it, the number is free again and counts from 0.
local function note_close(connection, frame, record, side)
  local channel = connection.channels[frame.channel]
  if not channel then
    record.is_idle = true
    return
  end
  for index = channel.first, channel.last do
    channel.pending[index].void = record.number
    channel.pending[index] = nil
  end
  channel.first, channel.last, channel.slices = 1, 0, {}
  channel.closed[side] = true
  if channel.closed.client and channel.closed.server then
    connection.channels[frame.channel] = nil
    record.is_free = true
  end
end

-- Enters a frame into its channel; only once for each, in the first pass.
function stream.note(connection, frame, record, side)
  connection.frames = connection.frames + 1
  if frame.kind == "close" then
    note_close(connection, frame, record, side)
  elseif IS_REQUEST[frame.kind] and side == "client" then
    note_request(channel_of(connection, frame.channel), record)
  elseif frame.kind == "reply" then
    note_reply(channel_of(connection, frame.channel), record)
  elseif frame.kind == "fragment" then
    note_fragment(channel_of(connection, frame.channel), record, frame)
  elseif frame.kind == "window" then
    channel_of(connection, frame.channel)
  elseif frame.kind == "cancel" then
    local channel = connection.channels[frame.channel]
    for index = channel and channel.first or 1, channel and channel.last or 0 do
      if channel.pending[index].sequence == frame.number then
        record.cancels = channel.pending[index]
      end
    end
  end
end

-- A reply that FRAGMENTs carried answers like any other.
function stream.note_whole(connection, frame, record)
  if frame.kind == "reply" then
    note_reply(channel_of(connection, frame.channel), record)
  end
end
