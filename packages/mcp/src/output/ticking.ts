import type { ToolCall } from "../tool/tool.ts";

/** Tells a client that waits, again and again, what `message` says after so many seconds. Disposing it ends that. */
export function tick({ session, progress }: ToolCall, message: (seconds: number) => string): Disposable {
  const startedAt = performance.now();
  const timer = setInterval(() => {
    progress(message(Math.round((performance.now() - startedAt) / 1000)));
  }, session.limits.progressEveryMs);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
