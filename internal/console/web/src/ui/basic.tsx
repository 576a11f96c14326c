// Small parts that all pages are made of.
import type {ComponentChildren} from "preact";
import {useEffect, useState} from "preact/hooks";
import type {Level} from "../lib/level";
import {Icon, type IconName} from "./icon";

// signs give each level a shape, for those who do not see its colour.
export const signs: Record<Level, IconName> = {good: "good", fair: "good", warn: "warn", bad: "bad", off: "off"};

export function Tag({level, icon, children, title}: {level?: Level | "accent"; icon?: IconName; children: ComponentChildren; title?: string}) {
  const sign = icon ?? (level && level !== "accent" ? signs[level] : undefined);
  return (
    <span class={"tag" + (level ? " is-" + level : "")} title={title}>
      {sign && <Icon name={sign} />}
      {children}
    </span>
  );
}

export function Notice({level, children, role}: {level?: Level; children: ComponentChildren; role?: "alert" | "status"}) {
  return (
    <div class={"notice" + (level ? " is-" + level : "")} role={role}>
      <Icon name={level ? signs[level] : "info"} />
      <div class="grow">{children}</div>
    </div>
  );
}

// Failed shows an error and, where that makes sense, a way to try again.
export function Failed({error, again}: {error: unknown; again?: () => void}) {
  return (
    <Notice level="bad" role="alert">
      <div class="row between">
        <span>{error instanceof Error ? error.message : String(error)}</span>
        {again && (
          <button class="button small" onClick={again}>
            Try again
          </button>
        )}
      </div>
    </Notice>
  );
}

export function Empty({title, children}: {title: string; children?: ComponentChildren}) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children && <p>{children}</p>}
    </div>
  );
}

// Wait shows nothing at first: most answers come before an eye could read a spinner.
export function Wait({what}: {what: string}) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const t = setTimeout(() => setLate(true), 250);
    return () => clearTimeout(t);
  }, []);
  return (
    <div class="empty" role="status" style={{visibility: late ? "visible" : "hidden"}}>
      <div class="spinner" aria-hidden="true" />
      <p>{what}</p>
    </div>
  );
}

export function Facts({rows}: {rows: ([string, ComponentChildren] | false | undefined)[]}) {
  return (
    <dl class="facts">
      {rows.map(
        (row) =>
          row && (
            <>
              <dt>{row[0]}</dt>
              <dd>{row[1]}</dd>
            </>
          ),
      )}
    </dl>
  );
}

// Meter shows a share as a bar. The figure stands beside it, so the bar itself is silent.
export function Meter({value, level}: {value: number; level?: Level}) {
  return (
    <div class={"meter" + (level === "warn" || level === "bad" ? " is-" + level : "")} aria-hidden="true">
      <i style={{width: Math.max(0, Math.min(1, value)) * 100 + "%"}} />
    </div>
  );
}

interface Option<T extends string> {
  value: T;
  label: string;
}

export function Choose<T extends string>({label, options, value, onChoose}: {label: string; options: Option<T>[]; value: T; onChoose: (v: T) => void}) {
  return (
    <div class="switch" role="group" aria-label={label}>
      {options.map((o) => (
        <button key={o.value} type="button" aria-pressed={o.value === value} onClick={() => onChoose(o.value)}>
          {o.label}
        </button>
      ))}
    </div>
  );
}

export function Search({label, value, onInput, placeholder}: {label: string; value: string; onInput: (v: string) => void; placeholder?: string}) {
  return (
    <div class="searching">
      <Icon name="search" />
      <input
        class="input"
        type="search"
        aria-label={label}
        placeholder={placeholder ?? label}
        value={value}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        onInput={(e) => onInput(e.currentTarget.value)}
      />
    </div>
  );
}
