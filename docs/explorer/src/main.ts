import "./style.css";
import { quickCore, type Answer } from "./core";
import { wrongSettings } from "./settings";
import { readAddress, writeAddress } from "./state";
import { h, problem } from "./ui";
import type { View } from "./view";
import { decide } from "./views/decide";
import { landscape } from "./views/landscape";
import { mass } from "./views/mass";
import { serve } from "./views/serve";
import { step } from "./views/step";
import { unbiased } from "./views/unbiased";

const views: View[] = [decide, landscape, serve, mass, unbiased, step];
const main = document.querySelector("main")!;
const nav = document.querySelector("nav")!;
const links = views.map((view) => h("a", { href: `#${view.id}` }, view.title));
nav.append(...links);

let parts: Answer | undefined;
let opened: View | undefined;
let address = "";

function open(): void {
  if (!parts) return;
  const { view: id, settings: given } = readAddress();
  const view = views.find((own) => own.id === id) ?? views[0]!;
  opened?.close?.();
  opened = view;
  const settings = { ...view.defaults };
  for (const key of Object.keys(view.defaults)) if (given[key] !== undefined && Object.hasOwn(view.allowed, key)) settings[key] = given[key];
  links.forEach((link, i) => (views[i] === view ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current")));
  document.title = `${view.title} – specsim explorer`;
  const wrong = wrongSettings(given, view.allowed, parts);
  if (wrong.length) {
    // Wrong settings show no result: it would be mistaken for a result of these settings.
    opened = undefined;
    address = location.hash;
    main.replaceChildren(h("h2", { class: "about" }, view.title), ...wrong.map((line) => problem(`The address has an error: ${line}`)), h("p", {}, h("a", { href: `#${view.id}` }, "Open it with its usual settings")));
    return;
  }
  const root = h("div", { class: "view", id: `view-${view.id}` });
  main.replaceChildren(h("h2", { class: "about" }, view.title), h("p", { class: "about" }, view.about), root);
  const save = (): void => {
    writeAddress(view.id, settings, view.defaults);
    address = location.hash;
  };
  save();
  view.open({ root, settings, parts, save });
  // On a phone the results must not be below a page of settings: all but the first group are folded away.
  const groups = innerWidth <= 760 ? [...root.querySelectorAll(".controls > fieldset")].slice(1) : [];
  if (groups.length) root.querySelector(".controls")!.append(h("details", { class: "more" }, h("summary", {}, "More settings"), ...groups));
}

window.addEventListener("hashchange", () => {
  if (location.hash !== address) open();
});

void quickCore()
  .ask({ ask: "parts" })
  .then((answer) => {
    if (answer.error) {
      main.replaceChildren(problem(String(answer.error)));
      return;
    }
    parts = answer;
    document.querySelector("footer")!.append(
      h("p", {}, `specsim ${answer.version}, commit ${String(answer.commit).slice(0, 12)}: the simulator itself, compiled to WebAssembly. Nothing leaves this page; the address holds the settings, to share or keep.`),
    );
    open();
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  });
