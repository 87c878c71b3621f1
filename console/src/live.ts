// Owns: Live: messages of channels, events of keys, entries of a stream, and MONITOR, as they come, bounded.

import { call, follow } from "./api";
import { count } from "./bytes";
import { attempt, field, fill, h, say } from "./dom";
import type { Page } from "./page";
import { may } from "./rights";

const LINES_MAX = 1000;
/** Lines a second that are shown: of the rest it is only told how many there were. */
const LINES_PER_SECOND_MAX = 200;
const DRAW_MS = 100;

/** Kinds that are commands; the others are for whoever may read what they tell of. */
const LIVE_COMMANDS = ["subscribe", "psubscribe", "monitor"];

export const live: Page = {
  name: "live",
  title: "Live",
  needs: LIVE_COMMANDS,
  show(into, signal) {
    const names = { subscribe: "messages of a channel", psubscribe: "messages of channels by pattern", events: "what happens to keys", stream: "entries of a stream", monitor: "every command (MONITOR)" };
    const kind = h("select", {}, ...Object.entries(names).filter(([name]) => !LIVE_COMMANDS.includes(name) || may(name)).map(([value, title]) => h("option", { value }, title)));
    const what = h("input", { value: "news", required: true });
    const label = h("span", {}, "Channel");
    const of = h("label", {}, label, what);
    const start = h("button", { type: "submit", class: "strong" }, "Follow");
    const pause = h("button", { type: "button", "aria-pressed": "false" }, "Pause");
    const status = h("p", { class: "faint", role: "status" });
    const output = h("div", { class: "output tall-output", role: "log", "aria-label": "What comes", tabindex: 0 });
    const form = h("form", { class: "row" }, field("What", kind), of, start, pause);
    const channel = h("input", { required: true, value: "news" });
    const message = h("input", { required: true });
    const send = h("form", { class: "row" }, field("Channel", channel), field("Message", message), h("button", { type: "submit" }, "Publish"));
    fill(into, form, status, output, ...(may("publish") ? [h("h2", {}, "Publish"), send] : []));

    let following: AbortController | undefined;
    let pending: string[] = [];
    let left = LINES_PER_SECOND_MAX;
    let passed = 0;
    let total = 0;
    let begun = false;
    let paused = false;
    signal.addEventListener("abort", () => following?.abort());
    const second = setInterval(() => (left = LINES_PER_SECOND_MAX), 1000);
    let counted = 0;
    const drawing = setInterval(() => {
      if (total === counted || paused) return;
      counted = total;
      const atEnd = output.scrollHeight - output.scrollTop - output.clientHeight < 40;
      output.append(...pending.map((line) => h("div", { class: "line" }, line)));
      pending = [];
      while (output.childElementCount > LINES_MAX) output.firstElementChild?.remove();
      if (atEnd) output.scrollTop = output.scrollHeight;
      status.textContent = `${count(total)} have come${passed > 0 ? `, ${count(passed)} of them too fast to be shown` : ""}`;
    }, DRAW_MS);
    signal.addEventListener("abort", () => [second, drawing].forEach(clearInterval));
    const told = (line: string) => {
      // Each of these streams says first that it has begun: that is no news.
      if (!begun) {
        begun = true;
        status.textContent = "It is followed.";
        return;
      }
      total++;
      if (left <= 0 || pending.length >= LINES_MAX) {
        passed++;
        return;
      }
      left--;
      pending.push(`${new Date().toLocaleTimeString("en-GB")}  ${line}`);
    };
    kind.addEventListener("change", () => {
      of.hidden = what.disabled = kind.value === "monitor";
      label.textContent = ({ subscribe: "Channel", stream: "Key" } as Record<string, string>)[kind.value] ?? "Pattern";
      what.value = ({ subscribe: "news", stream: "", monitor: "" } as Record<string, string>)[kind.value] ?? "*";
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      following?.abort();
      const own = new AbortController();
      following = own;
      fill(output);
      [total, counted, passed, pending, begun] = [0, 0, 0, [], false];
      const name = encodeURIComponent(what.value);
      const paths: Record<string, string> = { events: `/v1/events?match=${name}`, stream: `/v1/db/0/streams/${name}`, monitor: "/monitor" };
      const path = paths[kind.value] ?? `/${kind.value}/${name}`;
      status.textContent = "It is asked for.";
      void attempt(async () => {
        await follow(path, { signal: own.signal, method: kind.value === "monitor" ? "POST" : "GET" }, told);
        if (!own.signal.aborted) status.textContent = "The stream has ended.";
      });
    });
    pause.addEventListener("click", () => {
      paused = !paused;
      pause.setAttribute("aria-pressed", String(paused));
      pause.textContent = paused ? "Go on" : "Pause";
    });
    send.addEventListener("submit", (event) => {
      event.preventDefault();
      void attempt(async () => {
        const got = await call(0, ["PUBLISH", channel.value, message.value]);
        say(`Received by ${String(got)}.`);
      });
    });
  },
};
