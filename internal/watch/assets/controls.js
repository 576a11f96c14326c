// The bar under the picture, and the keys.

const $ = (id) => document.getElementById(id);

// wireControls ties buttons and keys to the player: {video, toLive, connected, connect}.
export function wireControls({video, toLive, connected, connect}) {
  const toggle = () => {
    if (!connected()) connect();
    else if (video.paused) toLive();
    else video.pause();
  };
  const sound = (on) => {
    if (on && $("volume").value === "0") $("volume").value = "80";
    video.volume = $("volume").value / 100;
    video.muted = !on;
  };
  const louder = (by) => {
    $("volume").value = Number($("volume").value) + by;
    sound($("volume").value !== "0");
  };
  const full = () => {
    if (document.fullscreenElement) document.exitFullscreen();
    else if ($("stage").requestFullscreen) $("stage").requestFullscreen().catch(() => {});
    else if (video.webkitEnterFullscreen) video.webkitEnterFullscreen(); // iPhone
  };

  const draw = () => {
    const quiet = video.muted || video.volume === 0;
    label($("play"), !video.paused, "Pause", "Play", "space");
    label($("mute"), !quiet, "Mute", "Unmute", "m");
    $("unmute").hidden = !quiet || document.body.dataset.touched === "sound";
  };
  for (const e of ["play", "pause", "volumechange", "emptied"]) video.addEventListener(e, draw);
  const asked = (on) => { document.body.dataset.touched = "sound"; sound(on); draw(); };

  $("play").onclick = toggle;
  video.onclick = toggle;
  video.ondblclick = full;
  $("mute").onclick = () => asked(video.muted || video.volume === 0);
  $("unmute").onclick = () => asked(true);
  $("volume").oninput = () => asked($("volume").value !== "0");
  $("live").onclick = toLive;
  $("full").onclick = full;

  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input[type=text], textarea")) return;
    const onButton = e.target.matches("button, a, input, summary");
    const keys = {
      m: () => $("mute").click(), l: toLive, f: full, k: toggle,
      " ": onButton ? null : toggle,
      ArrowUp: onButton ? null : () => { louder(10); asked(true); },
      ArrowDown: onButton ? null : () => { louder(-10); asked($("volume").value !== "0"); },
    };
    if (!keys[e.key]) return;
    e.preventDefault();
    keys[e.key]();
  });
  draw();
}

// label sets a two-state button's picture, name and tooltip.
function label(button, on, whenOn, whenOff, key) {
  const text = on ? whenOn : whenOff;
  button.classList.toggle("on", on);
  button.setAttribute("aria-label", text);
  button.title = `${text} (${key})`;
}
