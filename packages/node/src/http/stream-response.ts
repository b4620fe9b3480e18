import { SandboxError } from "@sandpiper/core";
import type { Call } from "./call.ts";
import { publicError } from "./error-response.ts";

export interface StreamOptions {
  readonly status?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Said beforehand; a source that ends earlier was cut. */
  readonly lengthBytes?: number | undefined;
  /** Answer at once instead of waiting for the first piece, for what may rest before it. */
  readonly beginsAtOnce?: boolean | undefined;
}

/**
 * Answers with bytes at the reader's pace. What fails before the first piece is answered as an error; what fails later
 * cuts the connection, so that nobody takes a part for the whole. The source's signal says that the reader has gone.
 */
export async function streamResponse(
  call: Call,
  source: (signal: AbortSignal) => AsyncIterable<Uint8Array>,
  options: StreamOptions = {},
): Promise<Response> {
  const { status = 200, lengthBytes, beginsAtOnce = false } = options;
  const length = lengthBytes === undefined ? {} : { "content-length": String(lengthBytes) };
  const init = { status, headers: { ...call.headers, ...options.headers, ...length } };
  if (call.request.method === "HEAD") return new Response(null, init);

  const left = new AbortController();
  const iterator = source(left.signal)[Symbol.asyncIterator]();
  const leave = () => {
    left.abort();
    iterator.return?.().catch(() => {});
  };
  // A reader that goes before the body is first asked for never cancels it.
  call.request.signal.addEventListener("abort", leave, { once: true });
  const watched = call.watchCredential((error) => {
    leave();
    cut(call, undefined, error);
  });
  const done = () => {
    call.request.signal.removeEventListener("abort", leave);
    watched[Symbol.dispose]();
  };
  let first: IteratorResult<Uint8Array> | undefined;
  try {
    if (!beginsAtOnce) first = await iterator.next();
  } catch (thrown) {
    done();
    throw thrown;
  }

  let sent = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const next = first ?? (await iterator.next());
          first = undefined;
          if (next.done && lengthBytes !== undefined && sent !== lengthBytes) throw endedEarly(sent, lengthBytes);
          if (next.done) {
            done();
            controller.close();
          } else {
            sent += next.value.length;
            controller.enqueue(next.value);
          }
        } catch (thrown) {
          done();
          cut(call, controller, thrown);
        }
      },
      cancel() {
        done();
        leave();
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, init);
}

function cut(call: Call, controller: ReadableStreamDefaultController | undefined, thrown: unknown): void {
  const { operation, requestId, request, bindings, deps } = call;
  if (!request.signal.aborted) {
    deps.logger.warn({ requestId, operation, err: thrown }, "an answer was cut short");
  }
  // The server's own way of passing a stream's failure on would print it once more.
  if (bindings.outgoing === undefined) controller?.error(publicError(thrown));
  else bindings.outgoing.destroy();
}

function endedEarly(sentBytes: number, lengthBytes: number): SandboxError {
  return new SandboxError("data_loss", {
    reason: "ended_early",
    message: `only ${sentBytes} of ${lengthBytes} bytes were there to be sent`,
    hint: "it was changed while it was read; read it again",
  });
}
