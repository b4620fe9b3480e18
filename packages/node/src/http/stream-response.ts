import { SandboxError } from "@sandpiper/core";
import type { Call } from "./call.ts";
import { publicError } from "./error-response.ts";

export interface StreamOptions {
  readonly status?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The Content-Length; a source that ends earlier has failed. */
  readonly lengthBytes?: number | undefined;
  /** Sends the headers at once, for sources whose first piece may take long. */
  readonly beginsAtOnce?: boolean | undefined;
}

/**
 * Streams bytes with back-pressure. A failure before the first piece becomes an error answer. A later one closes the
 * connection, so that the reader notices the truncation. The source's signal aborts when the reader leaves.
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
  // A reader that leaves before it reads the body never cancels it.
  call.request.signal.addEventListener("abort", leave, { once: true });
  const watched = call.watchCredential((error) => {
    leave();
    abort(call, undefined, error);
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
          abort(call, controller, thrown);
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

function abort(call: Call, controller: ReadableStreamDefaultController | undefined, thrown: unknown): void {
  const { operation, requestId, request, bindings, deps } = call;
  if (!request.signal.aborted) {
    deps.logger.warn({ requestId, operation, err: thrown }, "aborted an answer");
  }
  // An error of the stream would make the server log it a second time.
  if (bindings.outgoing === undefined) controller?.error(publicError(thrown));
  else bindings.outgoing.destroy();
}

function endedEarly(sentBytes: number, lengthBytes: number): SandboxError {
  return new SandboxError("ended_early", { message: `only ${sentBytes} of ${lengthBytes} bytes could be sent` });
}
