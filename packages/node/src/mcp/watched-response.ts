/** The same answer; `over` is called once, when all of it has been read, or its reader has gone. */
export function watchedResponse(response: Response, request: Request, over: () => void): Response {
  const { body } = response;
  if (body === null) {
    over();
    return response;
  }
  const reader = body.getReader();
  const done = () => {
    request.signal.removeEventListener("abort", leave);
    over();
  };
  const leave = () => {
    done();
    reader.cancel().catch(() => {});
  };
  // A reader that goes before the body is first asked for never cancels it.
  request.signal.addEventListener("abort", leave, { once: true });
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done: isOver, value } = await reader.read();
        if (!isOver) return controller.enqueue(value);
        done();
        controller.close();
      },
      cancel: leave,
    },
    { highWaterMark: 0 },
  );
  return new Response(stream, response);
}
