// Owns: what may stand at a place of a JSON text that is being written, by its JSON Schema: the words that programs.ts offers.
// Does not own: the schemas (spec/schema), how words are offered (`./offers`).

export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  description?: string;
  type?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  items?: Schema;
  prefixItems?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  enum?: unknown[];
  const?: unknown;
  maxProperties?: number;
}

export interface Offer {
  word: string;
  help: string;
}

/** Where the word stands that is being written, and what it may be. */
export interface Place {
  from: number;
  /** What the word is put between: quotes, where there are none yet, and a colon behind a name. */
  before: string;
  after: string;
  offers: Offer[];
}

/** What is open at a place: an object with its names so far, or an array with the index. */
interface Level {
  names?: string[];
  /** The name whose value is being written. */
  name?: string | undefined;
  index: number;
}

const STRING = /"(?:[^"\\]|\\.)*"?/y;

/** The levels that are open at the end of a text, and the string that is: nothing where the text is none of JSON's. */
function scan(text: string): { levels: Level[]; from: number; partial: string; quoted: boolean } {
  const levels: Level[] = [];
  let at = 0;
  while (at < text.length) {
    const level = levels.at(-1);
    const char = text[at]!;
    if (char === '"') {
      STRING.lastIndex = at;
      const found = STRING.exec(text)![0];
      const isWhole = found.length > 1 && found.endsWith('"') && !/[^\\](\\\\)*\\"$/.test(found);
      if (!isWhole) return { levels, from: at + 1, partial: found.slice(1), quoted: true };
      at += found.length;
      if (level?.names !== undefined && level.name === undefined && /^\s*(:|$)/.test(text.slice(at))) {
        level.name = found.slice(1, -1);
        level.names.push(level.name);
      }
      continue;
    }
    if (char === "{") levels.push({ names: [], index: 0 });
    else if (char === "[") levels.push({ index: 0 });
    else if (char === "}" || char === "]") levels.pop();
    else if (char === "," && level !== undefined) {
      level.name = undefined;
      level.index++;
    }
    at++;
  }
  const partial = /[\w+*/<>=!.-]*$/.exec(text)![0];
  return { levels, from: text.length - partial.length, partial, quoted: false };
}

/** The schemas that a schema may stand for, references and alternatives resolved. */
function forms(root: Schema, schema: Schema | undefined, depth = 0): Schema[] {
  if (schema === undefined || depth > 8) return [];
  const inner = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].flatMap((one) => forms(root, one, depth + 1));
  const named = schema.$ref?.replace("#/$defs/", "");
  const referred = named === undefined ? [] : forms(root, root.$defs?.[named], depth + 1);
  return [schema, ...inner, ...referred];
}

const first = (text: string | undefined) => (text ?? "").split(/(?<=[.;:]) /)[0]!;

/** What may stand at the end of `text`. `commands` are the names that a command begins with, `names` those of values. */
export function place(schema: Schema, text: string, commands: string[]): Place {
  const { levels, from, partial, quoted } = scan(text);
  let open = forms(schema, schema);
  let parent: Schema[] = [];
  for (const level of levels.slice(0, -1)) open = inside(level, open);
  const level = levels.at(-1);
  const isName = level?.names !== undefined && level.name === undefined;
  const found = new Map<string, string>();
  if (level !== undefined && isName) {
    const names = level.names ?? [];
    const matching = open.filter((form) => form.properties !== undefined && (form.additionalProperties !== false || names.every((name) => name in form.properties!)));
    for (const form of matching) {
      if (names.length >= (form.maxProperties ?? Infinity)) continue;
      for (const [word, of] of Object.entries(form.properties!)) {
        if (word === "$schema" || names.includes(word) || found.has(word)) continue;
        found.set(word, first(of.description ?? form.description));
      }
    }
  } else if (level !== undefined) {
    parent = open;
    open = inside(level, open);
    for (const form of open) {
      for (const word of form.enum ?? []) if (typeof word === "string") found.set(word, first(form.description));
    }
    // The first word of a command is its name.
    const isCommand = level.names === undefined && level.index === 0 && parent.some((form) => form.prefixItems !== undefined);
    if (isCommand && partial !== "") for (const name of commands) found.set(name, "");
  }
  const start = partial.toLowerCase();
  const offers = [...found].filter(([word]) => word.toLowerCase().startsWith(start) && word !== partial).map(([word, help]) => ({ word, help }));
  const quote = quoted ? "" : '"';
  return { from, before: quote, after: isName ? '": ' : '"', offers };

  function inside(level: Level, open: Schema[]): Schema[] {
    const next = open.flatMap((form): (Schema | undefined)[] => {
      if (level.names !== undefined) {
        const name = level.name ?? "";
        const others = level.names.slice(0, -1);
        if (form.properties !== undefined && form.additionalProperties === false && !others.every((other) => other in form.properties!)) return [];
        const further = typeof form.additionalProperties === "object" ? form.additionalProperties : undefined;
        return [form.properties?.[name] ?? further];
      }
      return [form.prefixItems?.[level.index] ?? form.items];
    });
    return next.flatMap((one) => forms(schema, one));
  }
}
