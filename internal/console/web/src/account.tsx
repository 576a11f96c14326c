import {useEffect, useRef, useState} from "preact/hooks";
import {logOut, session} from "./lib/api";
import {network} from "./lib/live";
import {use} from "./lib/store";
import {Choose, Facts} from "./ui/basic";
import {useEscape} from "./ui/dialog";
import {Icon} from "./ui/icon";

type Theme = "system" | "light" | "dark";

// Account is who is logged in, and how the page looks.
export function Account() {
  const [open, setOpen] = useState(false);
  const who = use(session);
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  useEffect(() => {
    if (!open) return;
    const away = (e: MouseEvent) => !box.current!.contains(e.target as Node) && setOpen(false);
    document.addEventListener("mousedown", away);
    return () => document.removeEventListener("mousedown", away);
  }, [open]);
  return (
    <div class="menu" ref={box}>
      <button class="round" ref={button} aria-expanded={open} aria-label={`Account of ${who?.name ?? ""}`} title={who?.name} onClick={() => setOpen(!open)}>
        <Icon name="user" big />
      </button>
      {open && <Sheet close={close} />}
    </div>
  );
}

function Sheet({close}: {close: () => void}) {
  const who = use(session);
  const n = use(network);
  const [theme, setTheme] = useState<Theme>((document.documentElement.dataset.theme as Theme | undefined) ?? "system");
  useEscape(close);
  const choose = (t: Theme) => {
    setTheme(t);
    if (t === "system") {
      delete document.documentElement.dataset.theme;
      localStorage.removeItem("theme");
    } else {
      document.documentElement.dataset.theme = t;
      localStorage.setItem("theme", t);
    }
  };
  return (
    <div class="sheet">
      <div>
        <strong>{who?.name}</strong>
        <p class="soft small">{who?.role === "operator" ? "operator: may change the plan and documents" : "read-only: may look at everything"}</p>
      </div>
      <Choose label="Colours" value={theme} onChoose={choose} options={[{value: "system", label: "System"}, {value: "light", label: "Light"}, {value: "dark", label: "Dark"}]} />
      <Facts rows={[["Router", who?.router], ["Version", who?.version], ["Plan", n ? String(n.plan) : "–"]]} />
      <div class="row between">
        <button class="button" onClick={() => void logOut()}>
          Log out
        </button>
        <a class="small soft" href="/licences.txt" target="_blank" rel="noreferrer">
          Licences
        </a>
      </div>
    </div>
  );
}
