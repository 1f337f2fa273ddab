/** What the Bot API answers instead of a result. */
export class BotApiError extends Error {
  readonly status: number
  readonly parameters: Readonly<Record<string, number>>

  constructor(status: number, message: string, parameters: Readonly<Record<string, number>> = {}) {
    super(message)
    this.status = status
    this.parameters = parameters
  }
}

export function badRequest(what: string, parameters: Readonly<Record<string, number>> = {}): BotApiError {
  return new BotApiError(400, `Bad Request: ${what}`, parameters)
}
