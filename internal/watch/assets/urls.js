// Where the stream is, for this page and for other players.

// address reads the page's own: what is behind /watch, and the query, go on to the
// stream as they are, tokens included.
export function address() {
  const path = location.pathname.replace(/^\/watch/, "").replace(/\/+$/, "");
  const name = decodeURIComponent(path.slice(1));
  const ws = location.protocol === "https:" ? "wss:" : "ws:";
  return {
    name,
    http: `${location.origin}${path}.flv${location.search}`,
    ws: `${ws}//${location.host}${path}.flv${location.search}`,
    rtmp: rtmp(`${path}${location.search}`),
  };
}

// rtmp returns the address of a path over RTMP, or "" when the node has none.
export function rtmp(path) {
  const port = Number(document.body.dataset.rtmpPort);
  if (!port) return "";
  return `rtmp://${location.hostname}${port === 1935 ? "" : ":" + port}${path}`;
}

// list fills ul with a line for each way to open the stream.
export function list(ul, at) {
  const quoted = (url) => (/[&?;]/.test(url) ? `"${url}"` : url);
  const rows = [
    ["HTTP-FLV", at.http],
    ["WebSocket", at.ws],
    ["RTMP", at.rtmp],
    ["ffplay", `ffplay -fflags nobuffer ${quoted(at.http)}`],
    ["VLC", `vlc --network-caching=300 ${quoted(at.http)}`],
    ["mpv", `mpv --profile=low-latency ${quoted(at.http)}`],
    ["curl", `curl -o live.flv ${quoted(at.http)}`],
  ];
  for (const [label, text] of rows) {
    if (!text) continue;
    const li = document.createElement("li");
    const name = document.createElement("span");
    const code = document.createElement("code");
    const copy = document.createElement("button");
    name.textContent = label;
    code.textContent = text;
    copy.textContent = "Copy";
    copy.className = "copy";
    copy.setAttribute("aria-label", `Copy the address for ${label}`);
    copy.onclick = () => copyText(code, copy);
    li.append(name, code, copy);
    ul.append(li);
  }
}

async function copyText(code, button) {
  let done = false;
  try {
    await navigator.clipboard.writeText(code.textContent); // only where the page is "secure"
    done = true;
  } catch {
    getSelection().selectAllChildren(code);
    done = document.execCommand("copy");
    if (done) getSelection().removeAllRanges();
  }
  button.textContent = done ? "Copied" : "Selected";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}
