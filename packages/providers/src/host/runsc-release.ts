/** The gVisor release that Sandpiper is built and tested with; set-up builds the same one. */
export const runscRelease = Object.freeze({
  version: "20260905.0",
  moduleVersion: "v0.0.0-20260905035102-160fafc42237",
});
