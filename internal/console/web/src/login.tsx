import {useEffect, useRef, useState} from "preact/hooks";
import {logIn} from "./lib/api";
import {Notice} from "./ui/basic";

export function LogIn() {
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const first = useRef<HTMLInputElement>(null);
  const password = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = "Log in – Millrace";
    first.current!.focus();
  }, []);
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    setBusy(true);
    setError("");
    try {
      await logIn(first.current!.value.trim(), password.current!.value);
    } catch (e) {
      setError((e as Error).message);
      setBusy(false);
      password.current!.select();
    }
  };
  return (
    <main class="door">
      <form class="card" onSubmit={submit}>
        <h1 class="brand">
          <img src="/icon.svg" alt="" />
          Millrace
        </h1>
        <label class="field">
          <span>Name</span>
          <input class="input" ref={first} name="name" autocomplete="username" autocapitalize="off" spellcheck={false} required />
        </label>
        <label class="field">
          <span>Password</span>
          <input class="input" ref={password} name="password" type="password" autocomplete="current-password" required aria-invalid={!!error} />
        </label>
        {error && (
          <Notice level="bad" role="alert">
            {error}
          </Notice>
        )}
        <button class="button primary" disabled={busy}>
          {busy ? "Logging in" : "Log in"}
        </button>
      </form>
    </main>
  );
}
