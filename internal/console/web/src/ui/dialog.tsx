// Things that open over the page: a dialog that must be answered, a panel beside it, a
// menu. Esc closes the one on top, and the focus goes back to where it was.
import type {ComponentChildren} from "preact";
import {useEffect, useId, useRef} from "preact/hooks";
import {Icon} from "./icon";

const open: (() => void)[] = []; // what Esc closes, the newest last

addEventListener("keydown", (e) => {
  if (e.key !== "Escape" || e.defaultPrevented || !open.length) return;
  e.preventDefault();
  open[open.length - 1]!();
});

export function useEscape(close: () => void): void {
  const latest = useRef(close);
  latest.current = close;
  useEffect(() => {
    const mine = () => latest.current();
    open.push(mine);
    return () => {
      open.splice(open.indexOf(mine), 1);
    };
  }, []);
}

const focusable = "a[href],button:not(:disabled),input:not(:disabled),select:not(:disabled),textarea:not(:disabled),[tabindex='0']";

export function Dialog({title, close, children, footer}: {title: string; close: () => void; children: ComponentChildren; footer?: ComponentChildren}) {
  const box = useRef<HTMLDivElement>(null);
  const id = useId();
  useEscape(close);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    (box.current!.querySelector<HTMLElement>("[data-first]") ?? box.current!).focus();
    document.body.style.overflow = "hidden";
    return () => {
      document.body.style.overflow = "";
      before?.focus();
    };
  }, []);
  const trap = (e: KeyboardEvent) => {
    if (e.key !== "Tab") return;
    const all = [...box.current!.querySelectorAll<HTMLElement>(focusable)].filter((el) => el.offsetParent);
    const [first, last] = [all[0], all[all.length - 1]];
    const at = document.activeElement;
    if (e.shiftKey && (at === first || at === box.current)) {
      e.preventDefault();
      last?.focus();
    } else if (!e.shiftKey && at === last) {
      e.preventDefault();
      first?.focus();
    }
  };
  return (
    <div class="shade" onMouseDown={(e) => e.target === e.currentTarget && close()}>
      <div class="dialog" role="dialog" aria-modal="true" aria-labelledby={id} tabIndex={-1} ref={box} onKeyDown={trap}>
        <header>
          <h1 id={id}>{title}</h1>
          <button class="round" onClick={close} aria-label="Close" title="Close (Esc)">
            <Icon name="close" />
          </button>
        </header>
        <div class="body">{children}</div>
        {footer && <footer>{footer}</footer>}
      </div>
    </div>
  );
}

// Panel is what is known of the thing that was chosen. It takes the focus when another
// thing is chosen, not when its figures change.
export function Panel({name, title, under, close, children}: {name: string; title: string; under?: ComponentChildren; close: () => void; children: ComponentChildren}) {
  const box = useRef<HTMLElement>(null);
  const before = useRef<HTMLElement | null>(null);
  useEscape(close);
  useEffect(() => {
    const at = document.activeElement as HTMLElement | null;
    if (!box.current!.contains(at)) before.current = at;
    box.current!.focus({preventScroll: true});
    box.current!.scrollTop = 0;
  }, [name]);
  useEffect(
    () => () => {
      if (before.current?.isConnected) before.current.focus({preventScroll: true});
    },
    [],
  );
  return (
    <aside class="panel" aria-label={title} tabIndex={-1} ref={box}>
      <header>
        <div>
          <h1>{title}</h1>
          {under && <div class="row tight small soft">{under}</div>}
        </div>
        <button class="round" onClick={close} aria-label="Close" title="Close (Esc)">
          <Icon name="close" />
        </button>
      </header>
      {children}
    </aside>
  );
}
