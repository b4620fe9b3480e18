/** The code follows from the caller's next step; `reason` says what happened. */
export interface ErrorCodeEntry {
  readonly httpStatus: number;
  /** True when the same call may succeed later without a change by the caller. */
  readonly retryable: boolean;
  readonly meaning: string;
}

export const errorCodes = {
  invalid_argument: { httpStatus: 400, retryable: false, meaning: "The request is invalid; change it." },
  unauthenticated: { httpStatus: 401, retryable: false, meaning: "The credential is missing or not valid." },
  permission_denied: { httpStatus: 403, retryable: false, meaning: "The credential does not allow this." },
  not_found: {
    httpStatus: 404,
    retryable: false,
    meaning: "The resource does not exist, or the credential may not see it.",
  },
  already_exists: { httpStatus: 409, retryable: false, meaning: "The resource already exists." },
  conflict: { httpStatus: 409, retryable: true, meaning: "Another caller changed it first; read it again and retry." },
  failed_precondition: {
    httpStatus: 412,
    retryable: false,
    meaning: "The state does not allow this now; change the state first.",
  },
  gone: { httpStatus: 410, retryable: false, meaning: "It existed and is permanently gone." },
  resource_exhausted: {
    httpStatus: 429,
    retryable: true,
    meaning: "A limit or quota is reached; free resources or raise it.",
  },
  canceled: { httpStatus: 499, retryable: false, meaning: "The caller canceled the call." },
  deadline_exceeded: { httpStatus: 504, retryable: true, meaning: "It took longer than the time limit." },
  unimplemented: { httpStatus: 501, retryable: false, meaning: "This provider or version cannot do that." },
  unavailable: { httpStatus: 503, retryable: true, meaning: "It is not reachable now; retry with back-off." },
  data_loss: { httpStatus: 500, retryable: false, meaning: "Stored data is damaged or missing." },
  internal: { httpStatus: 500, retryable: false, meaning: "A fault in Sandpiper; please report it." },
} as const satisfies Record<string, ErrorCodeEntry>;

export type ErrorCode = keyof typeof errorCodes;

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === "string" && Object.hasOwn(errorCodes, value);
}
