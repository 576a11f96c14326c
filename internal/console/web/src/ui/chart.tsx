// A chart over time, drawn by uPlot.
import {useEffect, useRef, useState} from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

interface Line {
  label: string;
  values: (number | null)[];
  color: string; // name of a custom property
  dash?: number[];
}

interface Props {
  label: string; // what it shows, for those who do not see it
  times: number[]; // seconds
  lines: Line[];
  show: (v: number) => string; // a value with its unit
  height?: number;
  least?: number; // the top of the scale at least
}

export function Chart({label, times, lines, show, height = 130, least = 1}: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [at, setAt] = useState<number | null>(null); // where the pointer is
  const shape = lines.map((l) => l.label + l.color).join();

  useEffect(() => {
    const el = box.current!;
    const color = (name: string) => paint(el, name);
    const make = () => {
      plot.current?.destroy();
      const axis = {stroke: color("--soft"), font: "11px system-ui, sans-serif", grid: {stroke: color("--line"), width: 1}, ticks: {show: false}};
      plot.current = new uPlot(
        {
          width: el.clientWidth,
          height,
          padding: [8, 20, 0, 0],
          cursor: {y: false, points: {size: 6}},
          legend: {show: false},
          hooks: {setCursor: [(u) => setAt(u.cursor.idx ?? null)]},
          scales: {y: {range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(high ?? 0, least) * 1.15]}},
          axes: [
            {...axis, space: 70, size: 24, values: (_, ticks) => ticks.map((v) => hour(v).slice(0, 5)), incrs: [60, 120, 300, 600, 1800, 3600]},
            {...axis, space: 34, size: 68, gap: 4, values: (_, ticks) => ticks.map(show)},
          ],
          series: [
            {},
            ...lines.map((l) => ({
              label: l.label,
              stroke: color(l.color),
              width: 1.6,
              dash: l.dash,
              points: {show: false},
              spanGaps: false,
            })),
          ],
        },
        [times, ...lines.map((l) => l.values)] as uPlot.AlignedData,
        el,
      );
    };
    make();
    const resized = new ResizeObserver(() => {
      if (plot.current && el.clientWidth && el.clientWidth !== plot.current.width) plot.current.setSize({width: el.clientWidth, height});
    });
    resized.observe(el);
    // A canvas has no custom properties: it is painted again when the theme changes.
    const themed = new MutationObserver(make);
    themed.observe(document.documentElement, {attributes: true, attributeFilter: ["data-theme"]});
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", make);
    return () => {
      resized.disconnect();
      themed.disconnect();
      system.removeEventListener("change", make);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape, height]);

  useEffect(() => {
    plot.current?.setData([times, ...lines.map((l) => l.values)] as uPlot.AlignedData);
  }, [times, lines]);

  const last = lines.map((l) => `${l.label} ${lastOf(l.values, show)}`).join(", ");
  const value = (l: Line) => {
    const v = at === null ? undefined : l.values[at];
    return at === null ? lastOf(l.values, show) : v == null ? "–" : show(v);
  };
  return (
    <div class="chart">
      <div ref={box} role="img" aria-label={`${label}: now ${last}`} />
      <div class="chart-key" aria-hidden="true">
        <span class="soft">{at === null ? "now" : hour(times[at] ?? 0)}</span>
        {lines.map((l) => (
          <span key={l.label}>
            <i style={{borderTop: `2px ${l.dash ? "dashed" : "solid"} var(${l.color})`}} />
            {l.label} <b>{value(l)}</b>
          </span>
        ))}
      </div>
    </div>
  );
}

function lastOf(values: (number | null)[], show: (v: number) => string): string {
  const v = values.findLast((x) => x !== null);
  return v == null ? "not known" : show(v);
}

function hour(v: number): string {
  const d = new Date(v * 1000);
  return [d.getHours(), d.getMinutes(), d.getSeconds()].map((n) => String(n).padStart(2, "0")).join(":");
}

// paint asks the browser what a custom property comes to: light-dark() is resolved only
// where it is used.
function paint(el: HTMLElement, name: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  el.append(probe);
  const c = getComputedStyle(probe).color;
  probe.remove();
  return c;
}
