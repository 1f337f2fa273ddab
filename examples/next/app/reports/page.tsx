import { cookies } from 'next/headers'
import { access, customerIdIn } from '../../lib/access'

export default async function Reports() {
  const customerId = customerIdIn((await cookies()).toString())
  const check = customerId === null ? null : await access.check(customerId, { feature: 'reports' })
  if (check?.reason === 'unavailable') return <p>Your plan can’t be looked up now. Try again in a moment.</p>
  return check?.active ? <h1>Your reports</h1> : <a href="/pricing">Reports are part of the bigger plan</a>
}
