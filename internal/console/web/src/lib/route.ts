// Where the operator is: the path is the page, the query what is looked at on it. So every
// view has an address that can be sent to a colleague.
import {Value} from "./store";

export interface Route {
  page: string;
  query: URLSearchParams;
}

function read(): Route {
  return {page: location.pathname.replace(/^\/+|\/+$/g, "") || "network", query: new URLSearchParams(location.search)};
}

export const route = new Value<Route>(read());

addEventListener("popstate", () => route.set(read()));

export type Query = Record<string, string | undefined>;

export function address(page: string, query: Query = {}): string {
  const q = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value) q.set(key, value);
  const text = q.toString();
  return "/" + page + (text ? "?" + text : "");
}

export function go(page: string, query: Query = {}): void {
  const to = address(page, query);
  if (to === location.pathname + location.search) return;
  history.pushState(null, "", to);
  route.set(read());
}

// look changes parts of the query and stays on the page. What is typed replaces the
// address, so that going back does not undo it letter by letter.
export function look(change: Query, typed = false): void {
  const q: Query = Object.fromEntries(route.get().query);
  Object.assign(q, change);
  const to = address(route.get().page, q);
  if (to === location.pathname + location.search) return;
  if (typed) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  route.set(read());
}

// follow is for links: a plain click stays in the page, any other is the browser's.
export function follow(e: MouseEvent): void {
  const a = (e.currentTarget as HTMLElement).closest("a");
  if (!a || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  const to = new URL(a.href);
  if (to.origin !== location.origin) return;
  e.preventDefault();
  if (to.pathname + to.search === location.pathname + location.search) return;
  history.pushState(null, "", to);
  route.set(read());
}
