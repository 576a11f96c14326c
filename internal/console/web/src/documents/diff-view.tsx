import type {DiffLine} from "../lib/diff";

const sign = {same: " ", plus: "+", minus: "−", gap: "⋯"};

export function DiffView({lines}: {lines: DiffLine[]}) {
  if (!lines.length) return <p class="soft">Nothing differs.</p>;
  return (
    <pre class="diff" tabIndex={0} aria-label="Differences">
      {lines.map((l, i) => (
        <span key={i} class={l.kind}>
          {sign[l.kind]} {l.text}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}
