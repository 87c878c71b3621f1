
-- What can be filtered ---------------------------------------------------------------------------------------------------

local respb = Proto("respb", "RESPB")

local fields = {
  frame = ProtoField.string("respb.frame", "Kind", "core, module, argv, passthrough, unknown, reply, push, close, …"),
  opcode = ProtoField.uint16("respb.opcode", "Opcode", base.HEX),
  channel = ProtoField.uint16("respb.channel", "Channel", base.DEC),
  frame_length = ProtoField.uint32("respb.frame_length", "Frame length", base.DEC),
  module = ProtoField.uint16("respb.module", "Module", base.HEX, MODULE_NAMES),
  module_command = ProtoField.uint16("respb.module_command", "Command of the module", base.HEX),
  command = ProtoField.string("respb.command", "Command"),
  subcommand = ProtoField.string("respb.subcommand", "Subcommand"),
  argv = ProtoField.string("respb.argv", "Argument form", "The same command as RESP carries it"),
  argc = ProtoField.uint32("respb.argc", "Arguments", base.DEC, nil, nil, "Of the argument form, the name included"),
  key = ProtoField.string("respb.key", "Key"),
  argument = ProtoField.string("respb.argument", "Argument"),
  length = ProtoField.uint32("respb.length", "Length", base.DEC),
  count = ProtoField.uint32("respb.count", "Count", base.DEC),
  options8 = ProtoField.uint8("respb.options", "Options", base.HEX),
  option = ProtoField.string("respb.option", "Option", "An option bit that is set"),
  type = ProtoField.string("respb.type", "Type", "The type of a reply or of an element"),
  tag = ProtoField.uint8("respb.tag", "Tag", base.HEX),
  int = ProtoField.int64("respb.int", "Integer", base.DEC),
  double = ProtoField.double("respb.double", "Double"),
  bool = ProtoField.bool("respb.bool", "Boolean"),
  bulk = ProtoField.string("respb.bulk", "Bulk"),
  simple = ProtoField.string("respb.simple", "Simple string"),
  error = ProtoField.string("respb.error", "Error", "The text of an error reply"),
  big_number = ProtoField.string("respb.big_number", "Big number"),
  verbatim = ProtoField.string("respb.verbatim", "Verbatim string"),
  verbatim_format = ProtoField.string("respb.verbatim_format", "Format"),
  reply = ProtoField.string("respb.reply", "Reply", "A reply or a push on one line"),
  close_code = ProtoField.uint16("respb.close.code", "Code", base.DEC),
  close_reason = ProtoField.string("respb.close.reason", "Reason"),
  cancel = ProtoField.uint32("respb.cancel", "Request to cancel", base.DEC),
  cancel_in = ProtoField.framenum("respb.cancel_of", "It is in frame", base.NONE, frametype.REQUEST),
  window = ProtoField.uint32("respb.window", "More bytes", base.DEC),
  fragment_flags = ProtoField.uint8("respb.fragment.flags", "Flags", base.HEX),
  fragment_slice = ProtoField.none("respb.fragment.slice", "Slice"),
  fragment_in = ProtoField.framenum("respb.fragment.reassembled_in", "Put together in frame", base.NONE),
  fragment_of = ProtoField.framenum("respb.fragment.slice_in", "Slice in frame", base.NONE),
  sequence = ProtoField.uint32("respb.sequence", "Request number", base.DEC, nil, nil, "On its channel, from 0"),
  request_in = ProtoField.framenum("respb.request_in", "Request in frame", base.NONE, frametype.REQUEST),
  response_in = ProtoField.framenum("respb.response_in", "Reply in frame", base.NONE, frametype.RESPONSE),
  time = ProtoField.relative_time("respb.time", "Time from the request"),
  void_in = ProtoField.framenum("respb.void_in", "Void, by CLOSE in frame", base.NONE),
  malformed = ProtoField.string("respb.malformed", "Malformed", "The name of the wire error"),
  malformed_offset = ProtoField.uint32("respb.malformed.offset", "Offset in the frame", base.DEC),
  lost_in = ProtoField.framenum("respb.lost_in", "Stream lost in frame", base.NONE),
  switch = ProtoField.string("respb.switch", "Switch", "Where a RESP connection turns to RESPB"),
}

for key, entry in pairs(ARGUMENTS) do
  local abbreviation, name = "respb.arg." .. key, entry.n
  if entry.t == "int" then
    fields["arg_" .. key] = ProtoField.int64(abbreviation, name, base.DEC)
  elseif entry.t == "double" then
    fields["arg_" .. key] = ProtoField.double(abbreviation, name)
  else
    fields["arg_" .. key] = ProtoField.string(abbreviation, name)
  end
end

local experts = {
  malformed = ProtoExpert.new("respb.expert.malformed", "Malformed frame", expert.group.MALFORMED, expert.severity.ERROR),
  lost = ProtoExpert.new("respb.expert.lost", "The stream is lost", expert.group.MALFORMED, expert.severity.ERROR),
  warning = ProtoExpert.new("respb.expert.breach", "Breach of the protocol", expert.group.PROTOCOL, expert.severity.WARN),
  note = ProtoExpert.new("respb.expert.unknown", "Frame of a later version", expert.group.UNDECODED, expert.severity.NOTE),
  error = ProtoExpert.new("respb.expert.error", "Error reply", expert.group.RESPONSE_CODE, expert.severity.NOTE),
  unmatched = ProtoExpert.new("respb.expert.unmatched", "Reply without request", expert.group.SEQUENCE, expert.severity.NOTE),
  void = ProtoExpert.new("respb.expert.void", "Void", expert.group.SEQUENCE, expert.severity.NOTE),
  switch = ProtoExpert.new("respb.expert.switch", "Switch to RESPB", expert.group.SEQUENCE, expert.severity.CHAT),
}

respb.fields = fields
respb.experts = experts

respb.prefs.ports = Pref.range("TCP ports", "6379", "Ports of servers: what goes there is a request", 65535)
respb.prefs.argument_bytes =
  Pref.uint("Bytes of an argument in summaries", text.argument_bytes_max, "Longer arguments and values are elided")
respb.prefs.arguments = Pref.uint("Arguments in summaries", text.arguments_max, "Further arguments are counted")
