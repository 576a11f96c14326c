// Hooks that pages share.
import {useCallback, useEffect, useRef, useState} from "preact/hooks";
import {get, Refused} from "./api";

interface Asked<T> {
  value?: T;
  error?: unknown;
  again: () => void;
}

// useAsked asks the router for something, every few seconds if told so, and at once when
// what is told differs. What it knew stays on the page while it asks; another path begins anew.
export function useAsked<T>(path: string, query: Record<string, string | number | undefined> = {}, every = 0, told?: unknown): Asked<T> {
  const key = path + "?" + JSON.stringify(query);
  const [state, setState] = useState<{key?: string; value?: T; error?: unknown}>({});
  const [round, setRound] = useState(0);
  const again = useCallback(() => setRound((n) => n + 1), []);
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const ask = async () => {
      try {
        const value = await get<T>(path, query, stop.signal);
        setState({key, value});
      } catch (error) {
        if (stop.signal.aborted) return;
        setState((s) => ({key, value: s.key === key ? s.value : undefined, error}));
        if (error instanceof Refused && error.status >= 400 && error.status < 500 && error.status !== 404) return; // it will not get better
      }
      if (every && !stop.signal.aborted) timer = setTimeout(ask, every);
    };
    ask();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [key, round, every, told]);
  if (state.key !== key) return {again};
  return {value: state.value, error: state.error, again};
}

// useTick draws a component again every so often, for ages that are shown.
export function useTick(every = 1000): void {
  const [, draw] = useState(0);
  useEffect(() => {
    const t = setInterval(() => draw((n) => n + 1), every);
    return () => clearInterval(t);
  }, [every]);
}

// useWidth tells how wide an element is.
export function useWidth<E extends HTMLElement>(first: number) {
  const ref = useRef<E>(null);
  const [width, setWidth] = useState(first);
  useEffect(() => {
    const el = ref.current;
    if (!el) return;
    const watch = new ResizeObserver(() => setWidth(Math.floor(el.clientWidth)));
    watch.observe(el);
    setWidth(Math.floor(el.clientWidth));
    return () => watch.disconnect();
  }, []);
  return {ref, width};
}

// useLater gives a value after it has stayed the same for a while.
export function useLater<T>(value: T, wait: number): T {
  const [late, setLate] = useState(value);
  useEffect(() => {
    const t = setTimeout(() => setLate(value), wait);
    return () => clearTimeout(t);
  }, [value, wait]);
  return late;
}

// arrows moves the focus within a list by the arrow keys, Home and End.
export function arrows(e: KeyboardEvent, selector: string): void {
  const step = {ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity}[e.key];
  if (step === undefined) return;
  const all = [...(e.currentTarget as HTMLElement).querySelectorAll<HTMLElement>(selector)];
  const at = all.indexOf(document.activeElement as HTMLElement);
  if (at < 0) return;
  e.preventDefault();
  all[Math.max(0, Math.min(all.length - 1, at + step))]?.focus();
}
