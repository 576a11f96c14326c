// What is asked of the router. Answers are JSON; an error has a sentence for people and
// one word for the reason.
import {Value} from "./store";

interface Session {
  name: string;
  role: "operator" | "read-only";
  csrf: string;
  router: string;
  version: string;
}

// session is who is logged in: undefined until that is known, null if nobody is.
export const session = new Value<Session | null | undefined>(undefined);

export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly reason: string,
    message: string,
  ) {
    super(message);
  }
}

const tooLate = 15_000; // ms: a router that takes longer is in trouble

async function ask<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const headers: Record<string, string> = {Accept: "application/json"};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const csrf = session.get()?.csrf;
  if (method !== "GET" && csrf) headers["X-CSRF-Token"] = csrf;
  const late = AbortSignal.timeout(tooLate);
  let res: Response;
  try {
    res = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      cache: "no-store",
      signal: signal ? AbortSignal.any([signal, late]) : late,
    });
  } catch (e) {
    if (signal?.aborted) throw e;
    throw new Refused(0, "unreachable", late.aborted ? "The router has not answered for 15 seconds." : "The router cannot be reached.");
  }
  const text = await res.text();
  if (res.ok) return (text ? JSON.parse(text) : undefined) as T;
  let reason = "";
  let message = text.trim() || `The router answered ${res.status}.`;
  try {
    const told = JSON.parse(text) as {error?: string; reason?: string};
    reason = told.reason ?? "";
    message = told.error ?? message;
  } catch {
    // It was no JSON: something in between answered, and its text is all there is.
  }
  if (res.status === 401 && path !== "/api/login") session.set(null);
  throw new Refused(res.status, reason, sentence(message));
}

// sentence begins with a capital and ends with a full stop, as Go's errors do not.
export function sentence(s: string): string {
  const first = s.charAt(0).toUpperCase() + s.slice(1);
  return /[.!?…]$/.test(first) ? first : first + ".";
}

export function get<T>(path: string, query: Record<string, string | number | undefined> = {}, signal?: AbortSignal): Promise<T> {
  const q = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value !== undefined && value !== "") q.set(key, String(value));
  const text = q.toString();
  return ask<T>("GET", path + (text ? "?" + text : ""), undefined, signal);
}

export const post = <T>(path: string, body: unknown = {}, signal?: AbortSignal): Promise<T> => ask<T>("POST", path, body, signal);
export const put = <T>(path: string, body: unknown): Promise<T> => ask<T>("PUT", path, body);

export async function findSession(): Promise<void> {
  const who = await get<Session>("/api/session");
  session.set(who.name ? who : null);
}

export async function logIn(name: string, password: string): Promise<void> {
  await post<unknown>("/api/login", {name, password});
  await findSession();
}

export async function logOut(): Promise<void> {
  try {
    await post("/api/logout");
  } finally {
    session.set(null);
  }
}

export const mayEdit = (s: Session | null | undefined): boolean => s?.role === "operator";
