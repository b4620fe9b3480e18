/** The message about a status, without its prefix. */
export const status = (name: string, fields: object = {}) => ({
  event: "status_update",
  status: `SANDBOX_${name}`,
  ...fields,
});

/** The messages about code that prints one text to its standard output. */
export const executed = (data: string, exit_code = 0) => [
  status("EXECUTION_RUNNING"),
  { event: "stdout", data },
  status("EXECUTION_DONE", { exit_code }),
];
