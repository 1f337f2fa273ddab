/* Where the API has an id, and whether it knows it. */

import { isLatchkeyError } from '../errors.js'
import type { ProductAccessJson } from '../handlers/answers.js'
import type { Environment } from '../provider/event.js'
import type { Api } from './api.js'

/** `/customers/cus_1/grants`, each part percent-encoded. */
export function pathOf(...parts: readonly string[]): string {
  return parts.map((part) => `/${encodeURIComponent(part)}`).join('')
}

/** Whether nothing is stored about a customer; false if the API can't say: a hint must not fail the command. */
export function isUnknownIn(api: Api, environment: Environment, customerId: string): Promise<boolean> {
  return api.get(pathOf('customers', customerId), { environment }).then(
    () => false,
    (error: unknown) => isLatchkeyError(error) && error.code === 'customer_not_found',
  )
}

/** Whether nobody knows a product; false if the API can't say: a hint must not fail the command. */
export function isUnknownProduct(api: Api, environment: Environment | undefined, productId: string) {
  const path = pathOf('entitlements', 'nobody', productId)
  return api.get<ProductAccessJson>(path, { environment }).then(
    ({ unknown }) => unknown === true,
    () => false,
  )
}

export function unknownProductText(productId: string): string {
  return `the config does not name the product ${productId}, and no customer ever had access to it`
}
