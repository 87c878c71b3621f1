// Owns: what a page is: it is shown, and it ends when another is, with all that it asked for.

import { Refusal } from "./api";
import { attempt } from "./dom";

export interface Page {
  name: string;
  title: string;
  /** Commands by their full names: who may run none of them does not see the page. */
  needs: string[];
  /** Fills the element; what it has going ends with the signal. */
  show(into: HTMLElement, signal: AbortSignal): void | Promise<void>;
}

/** Runs something now and again while the page is shown and somebody can see it, until the server refuses it: then it says so. */
export function repeat(ms: number, signal: AbortSignal, action: () => Promise<void>): void {
  const run = async () => {
    if (signal.aborted) return;
    let refused = false;
    const watched = () => action().catch((error: unknown) => ((refused = error instanceof Refusal), Promise.reject(error)));
    if (!document.hidden) await attempt(watched);
    if (!signal.aborted && !refused) setTimeout(() => void run(), ms);
  };
  void run();
}
