// Owns: making elements. Text is always a text node: nothing that is stored is ever read as HTML.

import { Away } from "./api";

type Child = Node | string | number | null | undefined | false;
type Listeners = { [K in keyof HTMLElementEventMap as `on${K}`]?: (event: HTMLElementEventMap[K]) => void };
type Attributes = Listeners & { [name: string]: unknown };

/** `h("button", { class: "small", onclick: … }, "Text")`. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on") && typeof value === "function") {
      element.addEventListener(name.slice(2), value as EventListener);
    } else if (name === "value") {
      (element as unknown as { value: string }).value = String(value);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  append(element, children);
  return element;
}

function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(typeof child === "number" ? String(child) : child);
  }
}

/** The element has these children and no others. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  append(element, children);
}

export type Column<T> = { title: string; of: (row: T) => Child; number?: boolean; sort?: (row: T) => number | string };

/** A table of rows; a column that can be sorted by has a button for its head. */
export function table<T>(caption: string, columns: Column<T>[], rows: T[], empty = "nothing"): HTMLElement {
  let sorted: Column<T> | undefined;
  let down = true;
  const body = h("tbody");
  const heads = columns.map((column) => {
    const head = h("th", { scope: "col", class: column.number === true && "number" });
    if (column.sort === undefined) {
      append(head, [column.title]);
      return head;
    }
    const sort = () => {
      down = sorted === column ? !down : true;
      sorted = column;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      draw();
    };
    append(head, [h("button", { class: "plain", type: "button", onclick: sort }, column.title)]);
    return head;
  });
  const draw = () => {
    const list = [...rows];
    const by = sorted?.sort;
    if (by !== undefined) {
      list.sort((one, other) => {
        const [a, b] = [by(one), by(other)];
        const order = a < b ? -1 : a > b ? 1 : 0;
        return down ? -order : order;
      });
    }
    fill(
      body,
      ...list.map((row) => h("tr", {}, ...columns.map((column) => h("td", { class: column.number === true && "number" }, column.of(row))))),
    );
    if (list.length === 0) fill(body, h("tr", {}, h("td", { colspan: columns.length, class: "faint" }, empty)));
  };
  draw();
  const inner = h("table", {}, h("caption", { class: "hidden" }, caption), h("thead", {}, h("tr", {}, ...heads)), body);
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, inner);
}

/** A text that a dialog asks for; one of lines is what is stored, which may be empty. */
export interface Asked {
  label: string;
  value: string;
  lines?: boolean;
  optional?: boolean;
}

/** Asks before something is done; `field` makes it ask for a text, which is the answer. */
export function confirm(
  title: string,
  text: string,
  { verb = "OK", danger = false, field }: { verb?: string; danger?: boolean; field?: Asked } = {},
): Promise<string | null> {
  return new Promise((resolve) => {
    const given = { id: "asked", value: field?.value, autofocus: true };
    let input: HTMLInputElement | HTMLTextAreaElement | undefined;
    if (field?.lines === true) input = h("textarea", { ...given, class: "code", rows: 6, spellcheck: "false" });
    else if (field !== undefined) input = h("input", { ...given, required: field.optional !== true });
    const done = h("button", { class: danger ? "danger" : "strong", type: "submit", autofocus: input === undefined }, verb);
    const form = h(
      "form",
      { method: "dialog" },
      h("h2", { id: "asks" }, title),
      text === "" ? null : h("p", {}, text),
      input === undefined ? null : h("label", {}, field!.label, input),
      h("p", { class: "row end" }, h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), done),
    );
    const dialog = h("dialog", { "aria-labelledby": "asks" }, form);
    let answer: string | null = null;
    form.addEventListener("submit", () => (answer = input?.value ?? ""));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(answer);
    });
    document.body.append(dialog);
    dialog.showModal();
    input?.select();
  });
}

const SAID_MS = 6000;
let said: HTMLElement | undefined;

/** A line that tells what has happened, for screen readers too. */
export function say(text: string, bad = false): void {
  said ??= document.body.appendChild(h("div", { class: "said", role: "status", "aria-live": "polite" }));
  const line = h("p", { class: bad ? "bad" : "good" }, text);
  said.append(line);
  setTimeout(() => line.remove(), SAID_MS);
}

/** Runs what a button asks for; what goes wrong is said. */
export async function attempt(action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    // That the server is away stands above the page.
    if (!(error instanceof Away) && !(error instanceof DOMException && error.name === "AbortError")) {
      say(error instanceof Error ? error.message : String(error), true);
    }
  }
}

/** A labelled field. */
export function field(label: string, input: HTMLElement): HTMLElement {
  return h("label", {}, h("span", {}, label), input);
}
