// Owns: Clients and channels: who is connected, with the channels of a RESPB connection below it, and ending them.

import { call } from "./api";
import { count, duration, many, size, toText, type Bytes } from "./bytes";
import { attempt, confirm, fill, h, say } from "./dom";
import { type Page, repeat } from "./page";
import { may } from "./rights";

const EVERY_MS = 2000;
/** Connections that are shown at once. */
const SHOWN_MAX = 500;

type Client = Record<string, string>;

function parse(line: string): Client {
  const client: Client = {};
  for (const part of line.split(" ")) {
    const equals = part.indexOf("=");
    if (equals > 0) client[part.slice(0, equals)] = part.slice(equals + 1);
  }
  return client;
}

const FLAGS: Record<string, string> = {
  b: "waits",
  x: "in a transaction",
  d: "watched keys have changed",
  P: "subscribed",
  O: "monitors",
  t: "tracks keys",
  B: "tracks prefixes",
  A: "is being closed",
  c: "closes when read",
  e: "is not evicted",
};

function state(client: Client): string {
  const named = Array.from(client["flags"] ?? "", (flag) => FLAGS[flag]).filter((text) => text !== undefined);
  if (client["flags"]?.includes("b")) return "waits";
  return named.join(", ");
}

const protocol = (client: Client) => (client["resp"] === "4" ? "RESPB" : `RESP${client["resp"] ?? ""}`);
/** What it did last. */
const does = (client: Client) => (client["cmd"] === "NULL" ? "–" : (client["cmd"] ?? "").replace("|", " "));
const number = (client: Client, name: string) => Number(client[name] ?? 0);

export const clients: Page = {
  name: "clients",
  title: "Clients and channels",
  needs: ["client|list"],
  show(into, signal) {
    const filter = h("input", { type: "search", size: 30, placeholder: "address, name, user, command", "aria-label": "Filter clients" });
    const live = h("input", { type: "checkbox", id: "live", checked: true });
    const summary = h("p", { class: "faint" });
    const body = h("tbody");
    const titles = ["Client", "User", "Does", "Database", "Idle", "Commands", "Asked for", "Owed", ""];
    const inner = h(
      "table",
      {},
      h("caption", { class: "hidden" }, "Clients"),
      h("thead", {}, h("tr", {}, ...titles.map((title) => h("th", { scope: "col" }, title === "" ? h("span", { class: "hidden" }, "End it") : title)))),
      body,
    );
    fill(
      into,
      h("div", { class: "row middle" }, filter, h("label", { class: "line" }, live, "look again every two seconds")),
      summary,
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Clients" }, inner),
    );

    let all: Client[] = [];
    const kill = (client: Client) =>
      attempt(async () => {
        const text = `${client["addr"] ?? ""} ${client["name"] ?? ""}`.trim();
        if ((await confirm("End this client?", text, { verb: "End it", danger: true })) === null) return;
        await call(0, ["CLIENT", "KILL", "ID", client["id"] ?? "0"]);
        say("The client is gone.");
        await look();
      });
    const row = (client: Client, below: boolean) => {
      const id = client["id"] ?? "";
      const who = below
        ? h("td", { class: "below" }, `channel ${client["channel"] ?? ""}`, client["name"] ? ` ${client["name"]}` : "")
        : h("td", {}, client["name"] ? h("b", {}, client["name"]) : null, client["name"] ? " " : null, h("span", { class: "together" }, client["addr"] ?? ""), h("span", { class: "faint" }, ` ${protocol(client)} ${client["lib-name"] ?? ""}`));
      return h(
        "tr",
        {},
        who,
        h("td", {}, client["user"] ?? ""),
        h("td", {}, does(client), h("span", { class: "faint" }, ` ${state(client)}`)),
        h("td", { class: "number" }, client["db"] ?? ""),
        h("td", { class: "number" }, duration(number(client, "idle") * 1000)),
        h("td", { class: "number" }, count(number(client, "tot-cmds"))),
        h("td", { class: "number" }, size(number(client, "qbuf"))),
        h("td", { class: "number" }, size(number(client, "omem"))),
        h("td", {}, may("client|kill") && h("button", { type: "button", class: "small", "aria-label": `End client ${id}`, onclick: () => void kill(client) }, "End")),
      );
    };
    const draw = () => {
      const wanted = filter.value.toLowerCase();
      const matches = (client: Client) =>
        wanted === "" || ["addr", "name", "user", "cmd", "lib-name", "id"].some((name) => client[name]?.toLowerCase().includes(wanted));
      const groups = new Map<string, Client[]>();
      for (const client of all.filter(matches)) {
        const place = client["channel"] === undefined ? `#${client["id"] ?? ""}` : `${client["addr"] ?? ""}@${client["fd"] ?? ""}`;
        const group = groups.get(place);
        if (group === undefined) groups.set(place, [client]);
        else group.push(client);
      }
      const rows: HTMLElement[] = [];
      for (const group of groups.values()) {
        group.sort((one, other) => number(one, "channel") - number(other, "channel"));
        for (const client of group) {
          if (rows.length < SHOWN_MAX) rows.push(row(client, number(client, "channel") > 0));
        }
      }
      const channels = all.filter((client) => number(client, "channel") > 0).length;
      summary.textContent =
        `${many(all.length - channels, "connection", "connections")}, ${many(channels, "channel", "channels")} beside them` +
        (rows.length === SHOWN_MAX ? `; the first ${count(SHOWN_MAX)} are shown` : "");
      const focused = document.activeElement instanceof HTMLElement && body.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
      fill(body, ...rows);
      if (focused !== null) body.querySelector<HTMLElement>(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
    };
    const look = async () => {
      const text = toText((await call(0, ["CLIENT", "LIST"], signal)) as Bytes);
      all = text.split("\n").filter((line) => line !== "").map(parse);
      draw();
    };
    filter.addEventListener("input", draw);
    repeat(EVERY_MS, signal, async () => {
      if (live.checked || all.length === 0) await look();
    });
  },
};
