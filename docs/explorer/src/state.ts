// The settings of a view, in the part of the address after "#": #decide?hardware=h100-sxm&alpha=0.7. This makes a view shareable.
export type Settings = Record<string, string>;

export function readAddress(): { view: string; settings: Settings } {
  const [view, query] = location.hash.replace(/^#/, "").split("?");
  return { view: view ?? "", settings: Object.fromEntries(new URLSearchParams(query ?? "")) };
}

export function writeAddress(view: string, settings: Settings, defaults: Settings): void {
  const changed = Object.entries(settings).filter(([key, value]) => value !== defaults[key]);
  const query = new URLSearchParams(changed).toString();
  history.replaceState(null, "", `#${view}${query ? `?${query}` : ""}`);
}
