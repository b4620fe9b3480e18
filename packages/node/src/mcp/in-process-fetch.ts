/** What answers requests: a Hono app is one. */
export interface FetchHandler {
  fetch(request: Request, bindings: object): Response | Promise<Response>;
}

/** A fetch that asks a handler of this process, whatever the address. An aborted one ends as over a network: with an error. */
export function inProcessFetch(handler: FetchHandler): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    const { signal } = request;
    signal.throwIfAborted();
    const aborted = Promise.withResolvers<never>();
    const abort = () => aborted.reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    try {
      const response = await Promise.race([handler.fetch(request, {}), aborted.promise]);
      if (response.body === null) return response;
      return new Response(response.body.pipeThrough(new TransformStream(), { signal }), response);
    } finally {
      signal.removeEventListener("abort", abort);
    }
  };
}
