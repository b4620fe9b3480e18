import type { ToolCall } from "../tool/tool.ts";

/** Sends progress notifications until it is disposed; `message` gets the seconds so far. */
export function tick({ session, progress }: ToolCall, message: (seconds: number) => string): Disposable {
  const startedAt = performance.now();
  const timer = setInterval(() => {
    progress(message(Math.round((performance.now() - startedAt) / 1000)));
  }, session.limits.progressEveryMs);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
