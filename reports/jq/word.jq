# Checks -> the verdict's word. A failure outranks what could not be judged.
def word:
  if any(.[]; .status == "fail") then "FAIL"
  elif any(.[]; .status == "inconclusive") then "INCONCLUSIVE"
  else "PASS" end;
