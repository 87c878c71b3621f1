package main

// This file owns the line breaks of the report.

import "strings"

// lineCharsMax is the longest line of prose.
const lineCharsMax = 118

// wrap breaks paragraphs and items of lists anew; tables, headings, pictures and code stay as they are.
func wrap(text string) string {
	var out []string
	var words []string
	indent := ""
	flush := func() {
		line := indent
		for i, word := range words {
			switch {
			case i == 0:
				line += word
			case len([]rune(line))+1+len([]rune(word)) > lineCharsMax:
				out = append(out, line)
				indent = strings.Repeat(" ", len(indent))
				line = indent + word
			default:
				line += " " + word
			}
		}
		if len(words) > 0 {
			out = append(out, line)
		}
		words, indent = nil, ""
	}
	code := false
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		fence := strings.HasPrefix(line, "```")
		switch {
		case fence || code || line == "" || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "!["),
			strings.HasPrefix(line, "    "):
			flush()
			out = append(out, line)
			code = code != fence
		case strings.HasPrefix(line, "- "):
			flush()
			indent = "- "
			words = strings.Fields(line[2:])
		default:
			words = append(words, strings.Fields(line)...)
		}
	}
	flush()
	return strings.Join(out, "\n") + "\n"
}
