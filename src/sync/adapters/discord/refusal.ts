import type { RESTJSONErrorCodes } from 'discord-api-types/v10'

/** Discord understood a call and said no. Stays within the adapter, which knows what it means for each call. */
export class Refusal extends Error {
  /** Of HTTP. */
  readonly status: number
  /** Discord's own, such as 50013. */
  readonly code: number

  /** @param message Discord's own words, without the token */
  constructor(status: number, code: number, message: string) {
    super(message)
    this.name = 'Refusal'
    this.status = status
    this.code = code
  }
}

/** Whether Discord refused for one of these reasons. */
export function isRefusal(error: unknown, ...codes: readonly RESTJSONErrorCodes[]): error is Refusal {
  return error instanceof Refusal && codes.some((code) => code === error.code)
}
