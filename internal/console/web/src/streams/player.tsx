// Plays the stream from an edge, as a viewer would get it. The player (mpegts.js) is
// fetched when it is first wanted.
import {useEffect, useRef, useState} from "preact/hooks";
import type {StreamNode} from "../lib/stream-model";
import {Icon} from "../ui/icon";
import {Notice} from "../ui/basic";

interface Props {
  name: string;
  edges: StreamNode[];
  from: string;
  choose: (node: string) => void;
  close: () => void;
}

type State = {word: "connecting" | "playing" | "ended" | "failed"; text: string};

export function Player({name, edges, from, choose, close}: Props) {
  const video = useRef<HTMLVideoElement>(null);
  const [state, setState] = useState<State>({word: "connecting", text: ""});
  const [token, setToken] = useState("");
  const [round, setRound] = useState(0);
  const [figures, setFigures] = useState("");
  const edge = edges.find((e) => e.node === from);
  // The address stays while the edge is away for a moment: a picture that plays is not cut.
  const last = useRef("");
  if (edge?.play) last.current = edge.play;
  const url = last.current + (token ? (last.current.includes("?") ? "&" : "?") + token.replace(/^[?&]/, "") : "");

  useEffect(() => {
    let stopped = false;
    let end = () => {};
    setState({word: "connecting", text: ""});
    start(video.current!, url, (s) => !stopped && setState(s)).then(
      (stop) => {
        if (stopped) stop();
        else end = stop;
      },
      (e: unknown) => !stopped && setState({word: "failed", text: e instanceof Error ? e.message : String(e)}),
    );
    return () => {
      stopped = true;
      end();
    };
  }, [from, round]);

  useEffect(() => {
    const t = setInterval(() => {
      const v = video.current;
      if (!v?.buffered.length) return;
      const ahead = v.buffered.end(v.buffered.length - 1) - v.currentTime;
      const q = v.getVideoPlaybackQuality();
      setFigures([v.videoWidth && `${v.videoWidth}×${v.videoHeight}`, `${ahead.toFixed(1)} s buffered`, q.totalVideoFrames && `${q.droppedVideoFrames} frames dropped`].filter(Boolean).join(" · "));
    }, 1000);
    return () => clearInterval(t);
  }, []);

  const words = {connecting: "Connecting", playing: "Playing", ended: "The stream is over", failed: "Cannot be played"};
  return (
    <section class="card" aria-label="Player">
      <div class="head">
        <h2 class="grow">
          {words[state.word]} <span class="soft">from</span>
        </h2>
        <select class="input" style={{width: "auto"}} aria-label="Edge to play from" value={from} onChange={(e) => choose(e.currentTarget.value)}>
          {!edge && <option value={from}>{from}</option>}
          {edges.map((e) => (
            <option key={e.node} value={e.node}>
              {e.node}
            </option>
          ))}
        </select>
        <button class="round" aria-label="Close the player" title="Close the player" onClick={close}>
          <Icon name="close" />
        </button>
      </div>
      <div class="stage">
        <video ref={video} muted playsInline controls data-state={state.word} aria-label={`Picture of ${name}`} />
      </div>
      <div class="inside stack">
        {(state.word === "failed" || state.word === "ended") && (
          <Notice level={state.word === "failed" ? "bad" : "warn"} role="status">
            <div class="row between">
              <span>{state.text || "The publisher has stopped."}</span>
              <button class="button small" onClick={() => setRound(round + 1)}>
                Try again
              </button>
            </div>
          </Notice>
        )}
        <p class="soft small">
          {figures && <>{figures} · </>}
          <code>{url}</code>
        </p>
        {state.word === "failed" && (
          <label class="field">
            <span>If the edge asks for a token: what follows “?” in the signed address</span>
            <input class="input" value={token} autocomplete="off" spellcheck={false} onInput={(e) => setToken(e.currentTarget.value)} onKeyDown={(e) => e.key === "Enter" && setRound(round + 1)} />
          </label>
        )}
      </div>
    </section>
  );
}

async function start(video: HTMLVideoElement, url: string, tell: (s: State) => void): Promise<() => void> {
  if (!url) throw new Error("This edge does not say where it can be played from.");
  const {default: mpegts} = await import("mpegts.js");
  if (!mpegts.isSupported()) throw new Error("This browser has no Media Source Extensions, so it cannot play a live stream on a page.");
  mpegts.LoggingControl.enableAll = false;
  const player = mpegts.createPlayer(
    {type: "flv", isLive: true, url, cors: true},
    {enableStashBuffer: false, liveSync: true, liveSyncMaxLatency: 1.6, liveSyncTargetLatency: 0.8, liveSyncPlaybackRate: 1.08, autoCleanupSourceBuffer: true, lazyLoad: false, deferLoadAfterSourceOpen: false},
  );
  const playing = () => tell({word: "playing", text: ""});
  video.addEventListener("playing", playing);
  player.on(mpegts.Events.LOADING_COMPLETE, () => tell({word: "ended", text: ""}));
  player.on(mpegts.Events.ERROR, (type: string, detail: string, info: {code?: number; msg?: string} | undefined) => {
    const text =
      type !== mpegts.ErrorTypes.NETWORK_ERROR
        ? `The browser cannot decode it: ${info?.msg ?? detail}.`
        : info?.code && info.code > 0
          ? `The edge answered ${info.code}${info.msg ? `: ${info.msg}` : ""}.`
          : "The edge cannot be reached from here. A page that came by https cannot fetch streams by http.";
    tell({word: "failed", text});
  });
  player.attachMediaElement(video);
  player.load();
  video.play().catch(() => undefined); // the controls are there for that
  return () => {
    video.removeEventListener("playing", playing);
    player.destroy();
  };
}
