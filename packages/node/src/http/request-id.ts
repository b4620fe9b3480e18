const SANE = /^[A-Za-z0-9._-]{1,128}$/;

/** The caller's own, where it can stand in a header and a log line as it is. */
export function requestIdOf(request: Request, randomUuid: () => string): string {
  const given = request.headers.get("x-request-id");
  return given !== null && SANE.test(given) ? given : randomUuid();
}
