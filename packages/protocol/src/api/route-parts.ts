/** The path prefix of one sandbox. */
export const SANDBOX = "/v1/sandboxes/{id}";

export const look = { readOnly: true, status: 200 } as const;
export const change = { readOnly: false, status: 200 } as const;
export const make = { readOnly: false, status: 201 } as const;
export const empty = { readOnly: false, status: 204 } as const;
