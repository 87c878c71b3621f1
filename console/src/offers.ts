// Owns: a list of words beside a field, to choose from by keyboard or pointer: which of them is marked, what the field and who
// cannot see are told. Does not own: which words there are, what taking one does.

import { fill, h } from "./dom";
import type { Offer } from "./schema";

const OFFERS_MAX = 12;

export interface Offers {
  element: HTMLElement;
  show(offers: Offer[]): void;
  hide(): void;
  /** Whether the key was for the list. */
  key(event: KeyboardEvent): boolean;
}

/** The list is to be put near the field, and asked first of each key that is pressed in it. */
export function offers(input: HTMLInputElement | HTMLTextAreaElement, { id, label, take }: { id: string; label: string; take: (word: string) => void }): Offers {
  const element = h("ul", { id, class: "candidates", role: "listbox", "aria-label": label, hidden: true });
  let words: Offer[] = [];
  let marked = -1;
  input.setAttribute("aria-controls", id);
  input.setAttribute("aria-autocomplete", "list");
  const hide = () => {
    element.hidden = true;
    input.removeAttribute("aria-activedescendant");
    if (input.getAttribute("role") === "combobox") input.setAttribute("aria-expanded", "false");
  };
  const mark = (at: number) => {
    marked = (at + words.length) % words.length;
    [...element.children].forEach((one, index) => one.setAttribute("aria-selected", String(index === marked)));
    element.children[marked]?.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", `${id}${marked}`);
  };
  const show = (offers: Offer[]) => {
    words = offers.slice(0, OFFERS_MAX);
    marked = -1;
    const rows = words.map(({ word, help }, at) =>
      h(
        "li",
        { role: "option", id: `${id}${at}`, "aria-selected": "false", onmousedown: (event: MouseEvent) => (event.preventDefault(), take(word)) },
        word,
        help === "" ? null : h("span", { class: "faint" }, ` ${help}`),
      ),
    );
    fill(element, ...rows);
    hide();
    element.hidden = words.length === 0;
    if (input.getAttribute("role") === "combobox") input.setAttribute("aria-expanded", String(words.length > 0));
  };
  const key = (event: KeyboardEvent): boolean => {
    if (element.hidden) return false;
    if (event.key === "Escape") {
      hide();
    } else if (event.key === "Tab" && !event.shiftKey) {
      take(words[Math.max(marked, 0)]!.word);
    } else if (event.key === "Enter" && marked >= 0) {
      take(words[marked]!.word);
    } else if (event.key === "ArrowDown") {
      mark(marked + 1);
    } else if (event.key === "ArrowUp" && marked >= 0) {
      mark(marked - 1);
    } else {
      return false;
    }
    event.preventDefault();
    return true;
  };
  return { element, show, hide, key };
}
