// Owns: what a page is: it is shown, and it ends when another is, with all that it asked for.

export interface Page {
  name: string;
  title: string;
  /** The command whose right the page needs. */
  needs: string[];
  /** Fills the element; what it has going ends with the signal. */
  show(into: HTMLElement, signal: AbortSignal): void | Promise<void>;
}

/** Runs something now and again while the page is shown and somebody can see it. */
export function repeat(ms: number, signal: AbortSignal, action: () => Promise<void>): void {
  const run = async () => {
    if (signal.aborted) return;
    if (!document.hidden) await action().catch(() => {});
    if (!signal.aborted) setTimeout(() => void run(), ms);
  };
  void run();
}
