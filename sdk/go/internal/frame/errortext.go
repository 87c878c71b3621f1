package frame

// This file owns the texts of wire errors, as in spec/errors.json, which a test compares.

var texts = map[string]string{
	"multibulk-length":          "Protocol error: invalid multibulk length",
	"multibulk-line":            "Protocol error: too big mbulk count string",
	"expected-bulk":             "Protocol error: expected '$'",
	"bulk-length":               "Protocol error: invalid bulk length",
	"bulk-line":                 "Protocol error: too big bulk count string",
	"bulk-end":                  "Protocol error: invalid CRLF in request",
	"too-many-arguments":        "Protocol error: too many arguments",
	"unauthenticated-arguments": "Protocol error: unauthenticated multibulk length",
	"argument-too-long":         "Protocol error: invalid bulk length",
	"unauthenticated-argument":  "Protocol error: unauthenticated bulk length",
	"frame-too-long":            "Protocol error: frame exceeds the frame size limit",
	"bad-number":                "Protocol error: malformed number",
	"bad-bool":                  "Protocol error: malformed boolean",
	"too-deep":                  "Protocol error: reply nested too deeply",
	"too-many-elements":         "Protocol error: too many elements",
	"misplaced":                 "Protocol error: type not allowed here",
	"unknown-opcode":            "Protocol error: unknown opcode",
	"wrong-direction":           "Protocol error: opcode of the other direction",
	"unknown-bit":               "Protocol error: unknown option bit",
	"exclusive-bits":            "Protocol error: option bits exclude each other",
	"missing-bit":               "Protocol error: option bit without the one it needs",
	"bad-enum":                  "Protocol error: value not in the enumeration",
	"length-mismatch":           "Protocol error: lengths contradict each other",
	"empty-command":             "Protocol error: no command name",
	"not-one-command":           "Protocol error: passthrough carries exactly one RESP command",
	"bad-control":               "Protocol error: malformed control frame",
	"unknown-tag":               "Protocol error: unknown element tag",
}

// Text returns the text of the error reply, without its code.
func (e *WireError) Text() string { return texts[e.Name] }
