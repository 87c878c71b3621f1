
-- The tree --------------------------------------------------------------------------------------------------------------

local show = {}

-- The bytes of a node. An empty range stays within the buffer.
local function range_of(tvb, at, len)
  at = math.min(at, tvb:len())
  return tvb:range(at, math.max(0, math.min(len, tvb:len() - at)))
end

-- Adds nodes; `base` is where their frame begins in `tvb`.
local function add_nodes(tree, tvb, base, nodes)
  for _, node in ipairs(nodes) do
    local range = range_of(tvb, base + node.at, node.len)
    local field, item = fields[node.field], nil
    if not field then
      item = tree:add(range, node.label)
    elseif node.value == nil then
      item = tree:add(field, range)
    else
      item = tree:add(field, range, node.value)
    end
    if node.label then
      item:set_text(node.label)
    end
    if node.nodes then
      add_nodes(item, tvb, base, node.nodes)
    end
  end
end

local function add_generated(tree, field, value)
  if value ~= nil then
    tree:add(field, value):set_generated()
  end
end

local function add_malformed(tree, tvb, base, frame)
  local at = math.min(base + frame.error_at, tvb:len() - 1)
  local range = tvb:range(at, 1)
  local item = tree:add(fields.malformed, range, frame.error)
  item:append_text(string.format(" at offset %d", frame.error_at))
  local offset = tree:add(fields.malformed_offset, range, frame.error_at)
  offset:set_generated()
  local line = string.format("%s at offset %d", frame.error, frame.error_at)
  if not frame.len then
    line = line .. ": where the frame ends cannot be known, the stream is lost"
  end
  item:add_proto_expert_info(experts.malformed, line)
end

-- Which request or reply belongs to it, and what became of it.
local function add_relations(tree, frame, record)
  add_generated(tree, fields.sequence, record.sequence)
  if record.request then
    add_generated(tree, fields.request_in, record.request.number)
    local seconds = record.seconds - record.request.seconds
    local whole = math.floor(seconds)
    add_generated(tree, fields.time, NSTime.new(whole, math.floor((seconds - whole) * 1e9 + 0.5)))
  end
  add_generated(tree, fields.response_in, record.response)
  add_generated(tree, fields.void_in, record.void)
  add_generated(tree, fields.cancel_in, record.cancels and record.cancels.number)
  if record.unmatched then
    tree:add_proto_expert_info(experts.unmatched, "No request of this channel waits for a reply, as far as the capture shows")
  elseif record.discarded then
    tree:add_proto_expert_info(experts.void, "The channel is closing: this frame is discarded")
  elseif record.is_idle then
    tree:add_proto_expert_info(experts.void, "The channel is not open, as far as the capture shows")
  elseif record.is_free then
    tree:add_proto_expert_info(experts.void, "Closed by both sides: the channel's number may be used again")
  end
end

-- What a frame says, for the Info column.
function show.line(frame)
  local channel = frame.channel and string.format("[%d] ", frame.channel) or ""
  if frame.error then
    return string.format("%smalformed: %s at %d", channel, frame.error, frame.error_at)
  elseif frame.kind == "reply" then
    return channel .. "= " .. frame.line
  elseif frame.kind == "push" then
    return channel .. "push " .. frame.line
  end
  return channel .. frame.line
end

local function add_frame_fields(tree, tvb, base, frame)
  local opcode = tree:add(fields.opcode, tvb:range(base, 2))
  opcode:set_text(string.format("Opcode: 0x%04x (%s)", frame.opcode, opcode_name(frame)))
  tree:add(fields.channel, tvb:range(base + 2, 2))
  add_nodes(tree, tvb, base, frame.nodes)
  add_generated(tree, fields.frame, frame.kind)
  add_generated(tree, fields.frame_length, frame.len)
  if IS_REQUEST[frame.kind] and frame.command then
    add_generated(tree, fields.command, frame.command)
    add_generated(tree, fields.subcommand, frame.subcommand)
    if not frame.error then
      add_generated(tree, fields.argv, frame.line)
      add_generated(tree, fields.argc, frame.argc)
    end
  elseif frame.kind == "reply" or frame.kind == "push" then
    add_generated(tree, fields.reply, not frame.error and frame.line or nil)
  end
end

-- Adds a frame that begins at `base` of `tvb`; returns its item.
function show.frame(tree, tvb, base, frame, record)
  local shown = frame.len or tvb:len() - base
  local item = tree:add(respb, range_of(tvb, base, shown), "RESPB " .. show.line(frame))
  if frame.opcode then
    add_frame_fields(item, tvb, base, frame)
  end
  if frame.error then
    add_malformed(item, tvb, base, frame)
  end
  if frame.note then
    item:add_proto_expert_info(experts.note, frame.note)
  end
  if frame.has_error then
    item:add_proto_expert_info(experts.error, text.elide(frame.line, 120))
  end
  add_relations(item, frame, record)
  return item
end

-- The frames of a reply that came in slices, under the last of them.
function show.slices(tree, record)
  if not record.group then
    return
  end
  add_generated(tree, fields.fragment_in, record.group.number)
  for index = 1, record.whole and #record.group.numbers or 0 do
    add_generated(tree, fields.fragment_of, record.group.numbers[index])
  end
end

-- The Info column takes what is there already from the same packet, so that nothing of it is lost.
function show.info(pinfo, lines)
  local FRAMES_MAX = 10
  local shown = table.concat(lines, " | ", 1, math.min(#lines, FRAMES_MAX))
  if #lines > FRAMES_MAX then
    shown = string.format("%s | …(%d more frames)", shown, #lines - FRAMES_MAX)
  end
  pinfo.cols.protocol:set("RESPB")
  pinfo.cols.info:clear()
  local before = tostring(pinfo.cols.info)
  if before ~= "" and before:sub(1, 1) ~= "(" then
    shown = " | " .. shown
  end
  pinfo.cols.info:append(shown)
  pinfo.cols.info:fence()
end
