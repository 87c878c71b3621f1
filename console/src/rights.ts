// Owns: which commands this user may run, by their full names. What he may not is not offered; on which keys, the server says.

let commands = new Set<string>();

export function learn(names: string[]): void {
  commands = new Set(names);
}

/** Whether he may run all of these: `may("client|kill")`. */
export function may(...names: string[]): boolean {
  return names.every((name) => commands.has(name));
}
