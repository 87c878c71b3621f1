// Owns: the frame around the pages: who asks, which page is shown, which there are for this user, light and dark, whether the
// server is there.

import * as api from "./api";
import { clients } from "./clients";
import { command } from "./command";
import { fill, h } from "./dom";
import { keys } from "./keys";
import { live } from "./live";
import { overview } from "./overview";
import type { Page } from "./page";
import { persistence } from "./persistence";
import { programs } from "./programs";
import { learn, may } from "./rights";
import { slow } from "./slow";
import "./style.css";

const PAGES: Page[] = [overview, keys, command, clients, slow, live, programs, persistence];
const SCHEME = "weft.scheme";

const main = h("main", { id: "main", tabindex: -1 });
const nav = h("nav", { "aria-label": "Pages" });
const who = h("span", { class: "faint who" });
const leave = h("button", { type: "button", hidden: true, onclick: () => (api.forget(), location.reload()) }, "Leave");
const away = h("p", { class: "away", role: "status", hidden: true }, "The server does not answer. It is asked again until it does.");
let showing: AbortController | undefined;
let allowed: Page[] = [];
let isIn = false;

function setScheme(scheme: string): void {
  document.documentElement.style.colorScheme = scheme === "" ? "light dark" : scheme;
  sessionStorage.setItem(SCHEME, scheme);
  dispatchEvent(new Event("weft-scheme"));
}

function frame(): void {
  const scheme = h(
    "button",
    {
      type: "button",
      onclick: () => {
        const dark = getComputedStyle(document.documentElement).colorScheme === "light dark" ? matchMedia("(prefers-color-scheme: dark)").matches : document.documentElement.style.colorScheme === "dark";
        setScheme(dark ? "light" : "dark");
      },
    },
    "Light / dark",
  );
  fill(
    document.body,
    h("a", { class: "skip", href: "#main", onclick: (event: MouseEvent) => (event.preventDefault(), main.focus()) }, "To the page"),
    h("header", {}, h("strong", { class: "brand" }, "Weft"), nav, h("span", { class: "row end" }, who, scheme, leave)),
    away,
    main,
  );
}

/** Asks who somebody is; what the server said last time stands above. */
function signIn(said: string): void {
  isIn = false;
  showing?.abort();
  fill(nav);
  leave.hidden = true;
  fill(who);
  const user = h("input", { autocomplete: "username", value: "default" });
  const password = h("input", { type: "password", autocomplete: "current-password" });
  const token = h("input", { type: "password", autocomplete: "off" });
  const form = h(
    "form",
    { class: "card sign-in" },
    h("h1", {}, "Weft console"),
    said === "" ? null : h("p", { class: "bad", role: "alert" }, said),
    h("label", {}, "User", user),
    h("label", {}, "Password", password),
    h("p", { class: "faint" }, "or"),
    h("label", {}, "Token", token),
    h("p", { class: "row end" }, h("button", { type: "submit", class: "strong" }, "Sign in")),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (token.value !== "") api.useToken(token.value);
    else api.usePassword(user.value, password.value);
    void begin();
  });
  fill(main, form);
  password.focus();
}

/** Looks who it is, and which pages there are for him. */
async function begin(): Promise<void> {
  try {
    const { user, commands } = await api.rights();
    who.textContent = user;
    learn(commands);
    allowed = PAGES.filter((page) => page.needs.some((name) => may(name)));
    isIn = true;
    leave.hidden = !api.hasCredentials();
  } catch (error) {
    if (error instanceof api.Away) {
      setTimeout(() => void begin(), 1000);
    } else if (error instanceof api.Refusal && error.status === 401) {
      signIn(api.hasCredentials() ? error.message : "");
    } else {
      signIn(error instanceof Error ? error.message : String(error));
    }
    return;
  }
  show();
}

function show(): void {
  if (!isIn) return;
  showing?.abort();
  showing = new AbortController();
  const wanted = location.hash.slice(2);
  const page = allowed.find((one) => one.name === wanted) ?? allowed[0];
  fill(nav, ...allowed.map((one) => h("a", { href: `#/${one.name}`, "aria-current": one === page ? "page" : undefined }, one.title)));
  if (page === undefined) {
    fill(main, h("p", {}, "This user may not see any page."));
    return;
  }
  document.title = `${page.title} – Weft`;
  const place = h("div", { class: `page ${page.name}` });
  fill(main, h("h1", {}, page.title), place);
  void page.show(place, showing.signal);
}

api.listen(
  (isAway) => (away.hidden = !isAway),
  () => {
    if (isIn) signIn("This user or password is not valid any more.");
  },
);
addEventListener("hashchange", show);
frame();
setScheme(sessionStorage.getItem(SCHEME) ?? "");
void begin();
