"""What in a library is worth a person's look. The format is the doctor's; here it is what the lines say."""
