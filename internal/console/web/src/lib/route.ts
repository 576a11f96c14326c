// Where the operator is: the path says what is looked at, its first part on which page, and
// the query how. So every view has an address that can be sent to a colleague.
import {Value} from "./store";

interface Route {
  page: string;
  at: string[]; // the parts of the path behind the page
  query: URLSearchParams;
}

// Place is a path, part by part.
export type Place = string[];

export type Query = Record<string, string | undefined>;

// Places of what is linked to from everywhere.
export const nodeAt = (id: string): Place => ["network", "nodes", id];
export const linkAt = (from: string, to: string): Place => ["network", "links", from, to];
export const steerAt = (id: string): Place => ["plan", "nodes", id];
export const streamAt = (name: string): Place => ["streams", ...name.split("/")];

function read(): Route {
  const [page = "network", ...at] = location.pathname.split("/").filter(Boolean).map(decoded);
  return {page, at, query: new URLSearchParams(location.search)};
}

// decoded leaves a part that was not encoded by a browser as it is: nothing has that name.
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const route = new Value<Route>(read());

addEventListener("popstate", () => route.set(read()));

export function address(place: Place, query: Query = {}): string {
  const q = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value) q.set(key, value);
  const text = q.toString();
  return "/" + place.map(encodeURIComponent).join("/") + (text ? "?" + text : "");
}

const asked = (): Query => Object.fromEntries(route.get().query);

// beside is the address of another place on the same page, with the query as it is.
export const beside = (place: Place): string => address(place, asked());

export const move = (place: Place): void => visit(beside(place));

// look changes parts of the query and stays where it is. What is typed replaces the
// address, so that going back does not undo it letter by letter.
export function look(change: Query, typed = false): void {
  const {page, at} = route.get();
  visit(address([page, ...at], {...asked(), ...change}), typed);
}

function visit(to: string, replace = false): void {
  if (to === location.pathname + location.search) return;
  if (replace) history.replaceState(null, "", to);
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
  visit(to.pathname + to.search);
}
