# Lists, plurals and findings in words. Apart from format.jq, for those who need no more of it.

# A list of names that stays readable for hundreds of hosts.
def names($max):
  if length <= $max then join(", ") else (.[:$max] | join(", ")) + " and \(length - $max) more" end;

def plural($word): "\(.) \($word)" + (if . == 1 then "" else "s" end);

# What was found on a host: of one of its devices, or of itself.
def finding: if .device == null then .found else "\(.device): \(.found)" end;
