import { SERVICE_CODES, type ServiceCode } from '../provider/service-codes.js'

interface ServiceErrorOptions {
  readonly data?: object
  /** Where a code has more than one status. */
  readonly status?: number
  /** Whether what was done up to here stays done: a declined charge is on record. */
  readonly keepsChanges?: boolean
}

/** A documented refusal. */
export class ServiceError extends Error {
  readonly code: ServiceCode
  readonly status: number
  readonly data: object | undefined
  readonly keepsChanges: boolean

  constructor(code: ServiceCode, message: string, options: ServiceErrorOptions = {}) {
    super(message)
    this.code = code
    this.status = options.status ?? SERVICE_CODES[code]
    this.data = options.data
    this.keepsChanges = options.keepsChanges ?? false
  }
}

export function refuse(code: ServiceCode, message: string, options?: ServiceErrorOptions): never {
  throw new ServiceError(code, message, options)
}

export function refuseFields(fieldErrors: readonly { field: string; message: string }[]): never {
  refuse('VALIDATION_ERROR', 'The request is not valid.', { data: { fieldErrors } })
}

export function refuseField(field: string, message: string): never {
  refuseFields([{ field, message }])
}
