// Owns: bytes as the server gives them, and as text for people. What is stored may be any bytes.

// A mark of byte order is three bytes like others: it is neither dropped nor added.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const lossy = new TextDecoder("utf-8", { ignoreBOM: true });
const encoder = new TextEncoder();

export type Bytes = Uint8Array<ArrayBuffer>;

export function ofText(text: string): Bytes {
  return encoder.encode(text);
}

export function ofBase64(text: string): Bytes {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at++) bytes[at] = raw.charCodeAt(at);
  return bytes;
}

/** The text that the bytes are, or null where they are none that somebody could edit. */
export function asText(bytes: Bytes): string | null {
  try {
    const text = utf8.decode(bytes);
    return /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/.test(text) ? null : text;
  } catch {
    return null;
  }
}

/** A text to be edited, and the bytes of what became of it. */
export interface Editable {
  text: string;
  back(edited: string): Bytes;
}

/** The bytes as a text that a field gives back as it was, or null where none would: fields know one kind of line end. */
export function editable(bytes: Bytes): Editable | null {
  const text = asText(bytes);
  if (text === null || !text.includes("\r")) return text === null ? null : { text, back: ofText };
  if (/[\r\n]/.test(text.replaceAll("\r\n", ""))) return null;
  return { text: text.replaceAll("\r\n", "\n"), back: (edited) => ofText(edited.replaceAll("\n", "\r\n")) };
}

/** The text that the bytes are, what is no text being replaced. */
export function toText(bytes: Bytes): string {
  return lossy.decode(bytes);
}

/** One line for people: bytes that are no text as \xNN. */
export function shown(bytes: Bytes, max = 400): string {
  const text = asText(bytes.length > max ? bytes.slice(0, max) : bytes);
  const more = bytes.length > max ? ` … ${count(bytes.length)} bytes` : "";
  if (text !== null) return text.replace(/\r/g, "\\r").replace(/\n/g, "\\n") + more;
  return escaped(bytes.slice(0, max)) + more;
}

/** As `weft cli` has it: printable ASCII, the rest as \xNN. */
export function escaped(bytes: Bytes): string {
  let text = "";
  const named: Record<number, string> = { 7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 13: "\\r", 34: '\\"', 92: "\\\\" };
  for (const byte of bytes) {
    const name = named[byte];
    if (name !== undefined) text += name;
    else if (byte >= 32 && byte < 127) text += String.fromCharCode(byte);
    else text += "\\x" + byte.toString(16).padStart(2, "0");
  }
  return text;
}

export function toHex(bytes: Bytes): string {
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const row = Array.from(bytes.slice(at, at + 16), (byte) => byte.toString(16).padStart(2, "0"));
    lines.push(row.join(" "));
  }
  return lines.join("\n");
}

export function ofHex(text: string): Bytes | null {
  const digits = text.replace(/\s+/g, "");
  if (digits.length % 2 !== 0 || /[^0-9a-fA-F]/.test(digits)) return null;
  const bytes = new Uint8Array(digits.length / 2);
  for (let at = 0; at < bytes.length; at++) bytes[at] = parseInt(digits.slice(2 * at, 2 * at + 2), 16);
  return bytes;
}

export function same(one: Bytes, other: Bytes): boolean {
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}

const numbers = new Intl.NumberFormat("en");
export function count(value: number): string {
  return numbers.format(Math.round(value));
}

/** `1 entry`, `2 entries`. */
export function many(value: number, one: string, more: string): string {
  return `${count(value)} ${value === 1 ? one : more}`;
}

export function size(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (bytes >= 1024 && at < units.length - 1) {
    bytes /= 1024;
    at++;
  }
  return `${at === 0 || bytes >= 100 ? Math.round(bytes) : bytes.toFixed(1)} ${units[at]}`;
}

/** So many digits behind the point, without noughts at their end. */
export function short(value: number, digits = 1): string {
  return String(Number(value.toFixed(digits)));
}

export function micro(us: number): string {
  if (us >= 1e6) return `${short(us / 1e6, 2)} s`;
  return us >= 1000 ? `${short(us / 1000)} ms` : `${short(us, us < 10 ? 1 : 0)} µs`;
}

export function duration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}
