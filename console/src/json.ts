// Owns: laying out JSON that is edited and taking the layout away again, token by token: numbers, escapes and names that stand
// there twice stay as they are. Does not own: whether it is JSON, which JSON.parse says.

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const INDENT = "  ";

/** The same JSON without blanks between its tokens. */
export function compact(text: string): string {
  return (text.match(TOKEN) ?? []).join("");
}

/** The same JSON, a line for each value. */
export function pretty(text: string): string {
  const tokens = text.match(TOKEN) ?? [];
  let [out, depth] = ["", 0];
  const line = () => `\n${INDENT.repeat(depth)}`;
  tokens.forEach((token, at) => {
    const isOpen = token === "{" || token === "[";
    const isEmpty = isOpen && (tokens[at + 1] === "}" || tokens[at + 1] === "]");
    const closes = token === "}" || token === "]";
    const closesEmpty = closes && (tokens[at - 1] === "{" || tokens[at - 1] === "[");
    if (closes) depth--;
    if (closes && !closesEmpty) out += line();
    out += token;
    if (isOpen) depth++;
    if (token === ":") out += " ";
    if (token === "," || (isOpen && !isEmpty)) out += line();
  });
  return out;
}
